package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/retry"
)

func TestClientGoTypedClient(t *testing.T) {
	hello := start(t)
	ctx, client := withCheckedLog(t), typed(t, hello.Config())

	created := post(t, client, newWidget("alpha", 1))
	if created.UID == "" || created.ResourceVersion == "" || created.Generation != 1 || created.Namespace != namespace || created.CreationTimestamp.IsZero() {
		t.Errorf("created %+v", created.ObjectMeta)
	}
	w := created.DeepCopyObject().(*Widget)
	w.Spec.Size, w.Status.Ready = 2, true
	updated, err := put(t, client, w)
	if err != nil {
		t.Fatal(err)
	}
	if updated.Spec.Size != 2 || updated.Generation != 2 || updated.Status.Ready || updated.UID != created.UID {
		t.Errorf("updated %+v", updated)
	}
	if _, err := put(t, client, w); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v, want a conflict", err)
	}

	updated.Status, updated.Spec.Size = WidgetStatus{Ready: true, Replicas: 3}, 9
	withStatus := new(Widget)
	if err := client.Put().Namespace(namespace).Resource("widgets").Name("alpha").SubResource("status").Body(updated).Do(ctx).Into(withStatus); err != nil {
		t.Fatal(err)
	}
	if withStatus.Spec.Size != 2 || !withStatus.Status.Ready || withStatus.Status.Replicas != 3 || withStatus.Generation != 2 {
		t.Errorf("status update made %+v", withStatus)
	}
	got := new(Widget)
	if err := client.Get().Namespace(namespace).Resource("widgets").Name("alpha").VersionedParams(&metav1.GetOptions{}, parameters(t)).Do(ctx).Into(got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, withStatus) {
		t.Errorf("got %+v, want %+v", got, withStatus)
	}

	post(t, client, newWidget("beta", 1))
	list := new(WidgetList)
	if err := client.Get().Resource("widgets").VersionedParams(&metav1.ListOptions{FieldSelector: "metadata.name!=beta"}, parameters(t)).Do(ctx).Into(list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "alpha" || list.ResourceVersion == "" {
		t.Errorf("listed %+v", list)
	}
	patched := new(Widget)
	if err := client.Patch(types.MergePatchType).Namespace(namespace).Resource("widgets").Name("beta").Body([]byte(`{"spec":{"color":"red"}}`)).Do(ctx).Into(patched); err != nil {
		t.Fatal(err)
	}
	if patched.Spec != (WidgetSpec{Size: 1, Color: "red"}) {
		t.Errorf("patched %+v", patched.Spec)
	}
	uid := types.UID("another")
	err = client.Delete().Namespace(namespace).Resource("widgets").Name("beta").Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}).Do(ctx).Error()
	if !apierrors.IsConflict(err) {
		t.Errorf("delete of another uid: %v, want a conflict", err)
	}
	if err := client.Delete().Namespace(namespace).Resource("widgets").Name("beta").Body(&metav1.DeleteOptions{}).Do(ctx).Error(); err != nil {
		t.Error(err)
	}
	if err := client.Get().Namespace(namespace).Resource("widgets").Name("beta").Do(ctx).Error(); !apierrors.IsNotFound(err) {
		t.Errorf("get of what is deleted: %v", err)
	}
}

// A client that prefers protobuf receives JSON, as for custom resources.
func TestClientGoPrefersProtobuf(t *testing.T) {
	hello := start(t)
	c := hello.Config()
	c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client := typed(t, c)
	if w := post(t, client, newWidget("alpha", 1)); w.Spec.Size != 1 {
		t.Errorf("created %+v", w)
	}
}

func TestClientGoDynamicClient(t *testing.T) {
	hello := start(t)
	ctx := withCheckedLog(t)
	client, err := dynamic.NewForConfig(hello.Config())
	if err != nil {
		t.Fatal(err)
	}
	in := client.Resource(widgets).Namespace(namespace)
	make := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name, "labels": map[string]any{"name": name}}, "spec": map[string]any{"size": int64(1)},
		}}
	}
	u, err := in.Create(ctx, make("alpha"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := in.Watch(ctx, metav1.ListOptions{ResourceVersion: u.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	if err := unstructured.SetNestedField(u.Object, int64(2), "spec", "size"); err != nil {
		t.Fatal(err)
	}
	if u, err = in.Update(ctx, u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(u.Object, true, "status", "ready"); err != nil {
		t.Fatal(err)
	}
	if u, err = in.UpdateStatus(ctx, u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if ready, _, _ := unstructured.NestedBool(u.Object, "status", "ready"); !ready {
		t.Errorf("the status is %v", u.Object["status"])
	}
	if u, err = in.Patch(ctx, "alpha", types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/color","value":"red"}]`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if size, _, _ := unstructured.NestedInt64(u.Object, "spec", "size"); size != 2 || u.GetGeneration() != 3 {
		t.Errorf("the size is %d, the generation %d", size, u.GetGeneration())
	}
	if got, err := in.Get(ctx, "alpha", metav1.GetOptions{}); err != nil || !reflect.DeepEqual(got, u) {
		t.Errorf("got %v, %v; want %v", got, err, u)
	}
	for _, name := range []string{"beta", "gamma"} {
		if _, err := in.Create(ctx, make(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Delete(ctx, "alpha", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := in.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "name=beta"}); err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(widgets).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "gamma" || list.GetKind() != "WidgetList" || list.Items[0].GetKind() != "Widget" {
		t.Errorf("listed %v, %v", list, err)
	}
	wantEvents(t, w, "MODIFIED alpha", "MODIFIED alpha", "MODIFIED alpha", "ADDED beta", "ADDED gamma", "DELETED alpha", "DELETED beta")
}

// wantEvents reads events from a watch, and checks that their resourceVersions increase.
func wantEvents(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	last := int64(0)
	for i, text := range want {
		event, ok := next(t, w)
		if !ok {
			t.Fatalf("the watch ended before event %d, %s", i, text)
		}
		obj, err := meta.Accessor(event.Object)
		if err != nil {
			t.Fatalf("event %d: %v %v", i, event, err)
		}
		if got := fmt.Sprint(event.Type, " ", obj.GetName()); got != text {
			t.Errorf("event %d is %s, want %s", i, got, text)
		}
		rv := revision(t, obj.GetResourceVersion())
		if rv <= last {
			t.Errorf("event %d has resourceVersion %d after %d", i, rv, last)
		}
		last = rv
	}
}

func TestClientGoDiscoveryClient(t *testing.T) {
	hello := start(t)
	for name, legacy := range map[string]bool{"aggregated": false, "legacy": true} {
		t.Run(name, func(t *testing.T) {
			var sent harness.Recorder
			c := hello.Config()
			sent.Record(c)
			client, err := discovery.NewDiscoveryClientForConfig(c)
			if err != nil {
				t.Fatal(err)
			}
			client.UseLegacyDiscovery = legacy
			groups, lists, err := client.ServerGroupsAndResources()
			if err != nil {
				t.Fatal(err)
			}
			if len(groups) != 1 || groups[0].Name != "example.com" || groups[0].PreferredVersion.GroupVersion != "example.com/v1" {
				t.Errorf("groups are %v", groups)
			}
			if len(lists) != 1 || lists[0].GroupVersion != "example.com/v1" {
				t.Fatalf("resources are %v", lists)
			}
			wantResources(t, lists[0].APIResources)
			if n := sent.Count(func(r *http.Request) bool { return r.URL.Path == "/apis/example.com/v1" }); (n > 0) != legacy {
				t.Errorf("%d requests for the resources of one version", n)
			}
			mapper := restmapper.NewDiscoveryRESTMapper([]*restmapper.APIGroupResources{{
				Group: *groups[0], VersionedResources: map[string][]metav1.APIResource{"v1": lists[0].APIResources},
			}})
			if gvk, err := mapper.KindFor(schema.GroupVersionResource{Resource: "widget"}); err != nil || gvk != groupVersion.WithKind("Widget") {
				t.Errorf("widget is %v, %v", gvk, err)
			}
		})
	}

	client, err := discovery.NewDiscoveryClientForConfig(hello.Config())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := client.ServerVersion(); err != nil || v.GitVersion != "v1.37.0+keelson" {
		t.Errorf("version is %v, %v", v, err)
	}
	if doc, err := client.OpenAPISchema(); err != nil || len(doc.GetPaths().GetPath()) == 0 {
		t.Errorf("the OpenAPI v2 document has no paths, or: %v", err)
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil || paths["apis/example.com/v1"] == nil {
		t.Fatalf("OpenAPI v3 has %v, %v", paths, err)
	}
	doc, err := paths["apis/example.com/v1"].Schema("application/json")
	if err != nil || !json.Valid(doc) || !strings.Contains(string(doc), `"com.example.v1.Widget"`) {
		t.Errorf("the OpenAPI v3 document of example.com/v1 is %.200s, %v", doc, err)
	}
}

// wantResources checks the discovery of widgets.
func wantResources(t *testing.T, got []metav1.APIResource) {
	t.Helper()
	byName := map[string]metav1.APIResource{}
	for _, r := range got {
		byName[r.Name] = r
	}
	w := byName["widgets"]
	if w.Kind != "Widget" || w.SingularName != "widget" || !w.Namespaced || !reflect.DeepEqual(w.ShortNames, []string{"wd"}) || !reflect.DeepEqual(w.Categories, []string{"all"}) {
		t.Errorf("widgets is %+v", w)
	}
	if verbs := strings.Join(w.Verbs, " "); verbs != "create delete deletecollection get list patch update watch" {
		t.Errorf("the verbs of widgets are %s", verbs)
	}
	for name, kind := range map[string]string{"widgets/status": "Widget", "widgets/scale": "Scale"} {
		if sub := byName[name]; sub.Kind != kind || strings.Join(sub.Verbs, " ") != "get patch update" {
			t.Errorf("%s is %+v", name, sub)
		}
	}
	if s := byName["widgets/scale"]; s.Group != "autoscaling" || s.Version != "v1" {
		t.Errorf("the kind of widgets/scale is of %s/%s", s.Group, s.Version)
	}
}

func TestClientGoScaleClient(t *testing.T) {
	hello := start(t)
	post(t, typed(t, hello.Config()), newWidget("alpha", 1))
	ctx := withCheckedLog(t)
	disco, err := discovery.NewDiscoveryClientForConfig(hello.Config())
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(disco)
	if err != nil {
		t.Fatal(err)
	}
	scales, err := scale.NewForConfig(hello.Config(), restmapper.NewDiscoveryRESTMapper(groups), dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(disco))
	if err != nil {
		t.Fatal(err)
	}
	s, err := scales.Scales(namespace).Get(ctx, widgets.GroupResource(), "alpha", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Spec = autoscalingv1.ScaleSpec{Replicas: 4}
	if s, err = scales.Scales(namespace).Update(ctx, widgets.GroupResource(), s, metav1.UpdateOptions{}); err != nil || s.Spec.Replicas != 4 {
		t.Errorf("scaled to %v, %v", s, err)
	}
}

func TestClientGoMetadataClient(t *testing.T) {
	hello := start(t)
	post(t, typed(t, hello.Config()), newWidget("alpha", 1))
	ctx := withCheckedLog(t)
	client, err := metadata.NewForConfig(hello.Config())
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.Resource(widgets).Namespace(namespace).Get(ctx, "alpha", metav1.GetOptions{})
	if err != nil || got.Name != "alpha" || got.UID == "" {
		t.Errorf("got %v, %v", got, err)
	}
	list, err := client.Resource(widgets).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "alpha" {
		t.Errorf("listed %v, %v", list, err)
	}
	w, err := client.Resource(widgets).Watch(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	wantEvents(t, w, "ADDED alpha")
}

func TestClientGoRetryOnConflict(t *testing.T) {
	hello := start(t)
	client := typed(t, hello.Config())
	post(t, client, newWidget("counter", 0))

	const writers, times = 5, 10
	backoff := wait.Backoff{Steps: 500, Duration: 5 * time.Millisecond, Factor: 1, Jitter: 1}
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range times {
				if err := retry.RetryOnConflict(backoff, func() error { return increment(t, client) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	w := new(Widget)
	if err := client.Get().Namespace(namespace).Resource("widgets").Name("counter").Do(t.Context()).Into(w); err != nil {
		t.Fatal(err)
	}
	if w.Spec.Size != writers*times || w.Generation != writers*times+1 {
		t.Errorf("counted to %d in generation %d, want %d", w.Spec.Size, w.Generation, writers*times)
	}
}

// increment adds one to the size of widget counter, and fails if another client changes it meanwhile.
func increment(t *testing.T, client rest.Interface) error {
	w := new(Widget)
	if err := client.Get().Namespace(namespace).Resource("widgets").Name("counter").Do(t.Context()).Into(w); err != nil {
		return err
	}
	w.Spec.Size++
	_, err := put(t, client, w)
	return err
}
