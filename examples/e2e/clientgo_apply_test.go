package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv1apply "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
)

// asUnstructured returns a typed object in a form for checks of its metadata.
func asUnstructured(t *testing.T, obj any, apiVersion string) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(apiVersion) // typed clients drop it
	return u
}

func wantManagers(t *testing.T, obj *unstructured.Unstructured, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := owners(t, obj); !slices.Equal(got, want) {
		t.Errorf("the managers of %s are\n%s\nwant\n%s", obj.GetName(), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// web returns the configuration of one manager for a Deployment.
func web(namespace, image string) *appsv1apply.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "web"}
	return appsv1apply.Deployment("web", namespace).WithLabels(labels).WithSpec(appsv1apply.DeploymentSpec().
		WithReplicas(2).WithSelector(metav1apply.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1apply.PodTemplateSpec().WithLabels(labels).WithSpec(corev1apply.PodSpec().
			WithContainers(corev1apply.Container().WithName("main").WithImage(image).WithPorts(corev1apply.ContainerPort().WithContainerPort(80))))))
}

// The apply configurations of client-go, with a complex kind of Kubernetes.
func TestClientGoApplyConfigurations(t *testing.T) {
	kube := serveKubernetes(t)
	ctx, client := withCheckedLog(t), kube.clientset(t).AppsV1().Deployments(kube.namespace)
	ci := metav1.ApplyOptions{FieldManager: "ci"}

	created, err := client.Apply(ctx, web(kube.namespace, "nginx:1"), ci)
	if err != nil || created.UID == "" || created.Generation != 1 || created.Spec.Template.Spec.Containers[0].Ports[0].Protocol != corev1.ProtocolTCP {
		t.Fatalf("applied %+v, %v", created, err)
	}
	again, err := client.Apply(ctx, web(kube.namespace, "nginx:1"), ci)
	if err != nil || again.ResourceVersion != created.ResourceVersion || again.Spec.Template.Spec.Containers[0].Ports[0].Protocol != corev1.ProtocolTCP {
		t.Errorf("applied again: %+v, %v", again, err)
	}

	// A manager can extract its applied configuration, change it and apply it again.
	extracted, err := appsv1apply.ExtractDeployment(again, "ci")
	if err != nil || extracted.Spec == nil || *extracted.Spec.Template.Spec.Containers[0].Image != "nginx:1" || extracted.Spec.Strategy != nil ||
		extracted.Spec.Template.Spec.Containers[0].Ports[0].Protocol != nil {
		t.Fatalf("extracted %+v, %v", extracted, err)
	}
	extracted.Spec.WithReplicas(3)
	changed, err := client.Apply(ctx, extracted, ci)
	if err != nil || *changed.Spec.Replicas != 3 || changed.Generation != 2 {
		t.Errorf("applied what was extracted: %+v, %v", changed, err)
	}

	// Another manager adds a container of its own, and must not change fields of others.
	sidecar := func(image string) *appsv1apply.DeploymentApplyConfiguration {
		return appsv1apply.Deployment("web", kube.namespace).WithSpec(appsv1apply.DeploymentSpec().WithTemplate(corev1apply.PodTemplateSpec().
			WithSpec(corev1apply.PodSpec().WithContainers(corev1apply.Container().WithName("side").WithImage(image)))))
	}
	mesh := metav1.ApplyOptions{FieldManager: "mesh"}
	both, err := client.Apply(ctx, sidecar("side:1"), mesh)
	if err != nil || len(both.Spec.Template.Spec.Containers) != 2 || *both.Spec.Replicas != 3 {
		t.Errorf("applied a sidecar: %+v, %v", both, err)
	}
	_, err = client.Apply(ctx, web(kube.namespace, "nginx:2"), mesh)
	wantConflict(t, err, `Apply failed with 2 conflicts: conflicts with "ci":
- .spec.replicas
- .spec.template.spec.containers[name="main"].image`, `conflict with "ci"`, ".spec.replicas", `.spec.template.spec.containers[name="main"].image`)
	mesh.Force = true
	forced, err := client.Apply(ctx, web(kube.namespace, "nginx:2"), mesh)
	if err != nil || *forced.Spec.Replicas != 2 || len(forced.Spec.Template.Spec.Containers) != 1 {
		t.Errorf("forced: %+v, %v", forced, err)
	}

	// A dry run and an options error.
	if dry, err := client.Apply(ctx, sidecar("side:9"), metav1.ApplyOptions{FieldManager: "dry", DryRun: []string{metav1.DryRunAll}}); err != nil || len(dry.Spec.Template.Spec.Containers) != 2 {
		t.Errorf("a dry run: %+v, %v", dry, err)
	}
	if now, err := client.Get(ctx, "web", metav1.GetOptions{}); err != nil || now.ResourceVersion != forced.ResourceVersion {
		t.Errorf("after a dry run: %+v, %v", now, err)
	}
	if _, err := client.Apply(ctx, sidecar("side:1"), metav1.ApplyOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "fieldManager: Required value: is required for apply patch") {
		t.Errorf("without a manager: %v", err)
	}
	if _, err := client.Apply(ctx, web(kube.namespace, "nginx:2").WithUID("another"), ci); !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
		t.Errorf("with another uid: %v", err)
	}
}

// wantConflict checks an error of an apply: its text, and the cause of each field, all with the same text.
func wantConflict(t *testing.T, err error, message, cause string, fields ...string) {
	t.Helper()
	if !apierrors.IsConflict(err) || err.Error() != message {
		t.Errorf("got %v, want a conflict: %s", err, message)
		return
	}
	status := err.(apierrors.APIStatus).Status()
	var got []string
	for _, c := range status.Details.Causes {
		if c.Type != metav1.CauseTypeFieldManagerConflict || c.Message != cause {
			t.Errorf("a cause is %+v, want the message %q", c, cause)
		}
		got = append(got, c.Field)
	}
	if !slices.Equal(got, fields) {
		t.Errorf("the causes are of %q, want %q", got, fields)
	}
}

func TestClientGoApplySubresources(t *testing.T) {
	kube := serveKubernetes(t)
	ctx, client := withCheckedLog(t), kube.clientset(t).AppsV1().Deployments(kube.namespace)
	controller := metav1.ApplyOptions{FieldManager: "controller"}
	status := func(condition string) *appsv1apply.DeploymentApplyConfiguration {
		return appsv1apply.Deployment("web", kube.namespace).WithStatus(appsv1apply.DeploymentStatus().WithReplicas(2).
			WithConditions(appsv1apply.DeploymentCondition().WithType("Available").WithStatus(corev1.ConditionStatus(condition))))
	}
	if _, err := client.ApplyStatus(ctx, status("True"), controller); !apierrors.IsNotFound(err) {
		t.Errorf("the status of nothing: %v", err)
	}
	created, err := client.Apply(ctx, web(kube.namespace, "nginx:1"), metav1.ApplyOptions{FieldManager: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	reported, err := client.ApplyStatus(ctx, status("True"), controller)
	if err != nil || reported.Status.Replicas != 2 || len(reported.Status.Conditions) != 1 || reported.Generation != created.Generation {
		t.Fatalf("applied a status: %+v, %v", reported, err)
	}
	if again, err := client.ApplyStatus(ctx, status("True"), controller); err != nil || again.ResourceVersion != reported.ResourceVersion {
		t.Errorf("applied the same status: %+v, %v", again, err)
	}
	if mine, err := appsv1apply.ExtractDeploymentStatus(reported, "controller"); err != nil || mine.Spec != nil || mine.Status == nil || *mine.Status.Conditions[0].Type != "Available" {
		t.Errorf("extracted %+v, %v", mine, err)
	}
	// The main resource neither sets nor loses the status. The apply may be written nevertheless: the field manager sees a change
	// before the status is restored, and the new time changes the entry of ci, which kube-apiserver treats as a change too.
	if other, err := client.Apply(ctx, web(kube.namespace, "nginx:1").WithStatus(status("False").Status), metav1.ApplyOptions{FieldManager: "ci"}); err != nil ||
		other.Generation != reported.Generation || !reflect.DeepEqual(other.Status, reported.Status) {
		t.Errorf("applied a status beside a spec: %+v, %v", other, err)
	}

	scaled, err := client.ApplyScale(ctx, "web", autoscalingv1apply.Scale().WithName("web").WithNamespace(kube.namespace).
		WithSpec(autoscalingv1apply.ScaleSpec().WithReplicas(7)), metav1.ApplyOptions{FieldManager: "scaler", Force: true})
	if err != nil || scaled.Spec.Replicas != 7 || scaled.Status.Replicas != 2 {
		t.Fatalf("scaled to %+v, %v", scaled, err)
	}
	_, err = client.Apply(ctx, web(kube.namespace, "nginx:1"), metav1.ApplyOptions{FieldManager: "ci"})
	wantConflict(t, err, `Apply failed with 1 conflict: conflict with "scaler" with subresource "scale": .spec.replicas`,
		`conflict with "scaler" with subresource "scale"`, ".spec.replicas")
	without := web(kube.namespace, "nginx:1")
	without.Spec.Replicas = nil
	now, err := client.Apply(ctx, without, metav1.ApplyOptions{FieldManager: "ci"})
	if err != nil || *now.Spec.Replicas != 7 {
		t.Errorf("applied without replicas: %+v, %v", now, err)
	}
}

// The dynamic client applies objects without a Go type.
func TestClientGoDynamicApply(t *testing.T) {
	hello := start(t)
	ctx := withCheckedLog(t)
	client, err := dynamic.NewForConfig(hello.Config())
	if err != nil {
		t.Fatal(err)
	}
	in := client.Resource(widgets).Namespace(namespace)
	config := func(fields map[string]any) *unstructured.Unstructured {
		content := map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "alpha"}}
		for k, v := range fields {
			content[k] = v
		}
		return &unstructured.Unstructured{Object: content}
	}
	spec := func(fields map[string]any) *unstructured.Unstructured { return config(map[string]any{"spec": fields}) }
	a, b := metav1.ApplyOptions{FieldManager: "a"}, metav1.ApplyOptions{FieldManager: "b"}

	got, err := in.Apply(ctx, "alpha", spec(map[string]any{"size": int64(1), "color": "red"}), a)
	if err != nil {
		t.Fatal(err)
	}
	wantManagers(t, got, `a Apply {"f:spec":{"f:color":{},"f:size":{}}}`)
	_, err = in.Apply(ctx, "alpha", spec(map[string]any{"size": int64(2)}), b)
	wantConflict(t, err, `Apply failed with 1 conflict: conflict with "a": .spec.size`, `conflict with "a"`, ".spec.size")
	b.Force = true
	if got, err = in.Apply(ctx, "alpha", spec(map[string]any{"size": int64(2)}), b); err != nil {
		t.Fatal(err)
	}
	wantManagers(t, got, `a Apply {"f:spec":{"f:color":{}}}`, `b Apply {"f:spec":{"f:size":{}}}`)
	if got, err = in.ApplyStatus(ctx, "alpha", config(map[string]any{"status": map[string]any{"ready": true}}), a); err != nil {
		t.Fatal(err)
	}
	wantManagers(t, got, `a Apply {"f:spec":{"f:color":{}}}`, `a Apply/status {"f:status":{"f:ready":{}}}`, `b Apply {"f:spec":{"f:size":{}}}`)
	if got, err = in.Apply(ctx, "alpha", spec(map[string]any{}), a); err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"size": int64(2)}; fmt.Sprint(got.Object["spec"]) != fmt.Sprint(want) {
		t.Errorf("spec is %v, want %v", got.Object["spec"], want)
	}
	wantManagers(t, got, `a Apply/status {"f:status":{"f:ready":{}}}`, `a Apply {"f:spec":{}}`, `b Apply {"f:spec":{"f:size":{}}}`)

	// An update without managedFields keeps them, and the updater becomes the owner of what it changes.
	got.SetManagedFields(nil)
	if err := unstructured.SetNestedField(got.Object, int64(5), "spec", "size"); err != nil {
		t.Fatal(err)
	}
	if got, err = in.Update(ctx, got, metav1.UpdateOptions{FieldManager: "c"}); err != nil {
		t.Fatal(err)
	}
	wantManagers(t, got, `a Apply/status {"f:status":{"f:ready":{}}}`, `a Apply {"f:spec":{}}`, `c Update {"f:spec":{"f:size":{}}}`)
}

// Five managers apply fields of their own to one object, while others update it. There is no conflict without a cause, and no
// field is lost.
func TestClientGoApplyStorm(t *testing.T) {
	hello := start(t)
	ctx, typedClient := withCheckedLog(t), typed(t, hello.Config())
	client, err := dynamic.NewForConfig(hello.Config())
	if err != nil {
		t.Fatal(err)
	}
	in := client.Resource(widgets).Namespace(namespace)
	post(t, typedClient, newWidget("counter", 0))

	const managers, updaters, times = 5, 2, 10
	backoff := wait.Backoff{Steps: 500, Duration: 5 * time.Millisecond, Factor: 1, Jitter: 1}
	var all sync.WaitGroup
	for m := range managers {
		name := fmt.Sprintf("manager-%d", m)
		all.Go(func() {
			for i := 1; i <= times; i++ {
				config := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "example.com/v1", "kind": "Widget",
					"metadata": map[string]any{"name": "counter", "annotations": map[string]any{name: fmt.Sprint(i)}},
				}}
				got, err := in.Apply(ctx, "counter", config, metav1.ApplyOptions{FieldManager: name})
				if err != nil || got.GetAnnotations()[name] != fmt.Sprint(i) {
					t.Errorf("%s, time %d: %v", name, i, err)
				}
			}
		})
	}
	for range updaters {
		all.Go(func() {
			for range times {
				if err := retry.RetryOnConflict(backoff, func() error { return increment(t, typedClient) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()

	got, err := in.Get(ctx, "counter", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if size, _, _ := unstructured.NestedInt64(got.Object, "spec", "size"); size != updaters*times || got.GetGeneration() != updaters*times+1 {
		t.Errorf("counted to %d in generation %d, want %d", size, got.GetGeneration(), updaters*times)
	}
	var applied []string
	for _, line := range owners(t, got) {
		if strings.HasPrefix(line, "manager-") {
			applied = append(applied, line)
		}
	}
	for m := range managers {
		name := fmt.Sprintf("manager-%d", m)
		if got.GetAnnotations()[name] != fmt.Sprint(times) {
			t.Errorf("the annotations are %v", got.GetAnnotations())
		}
		if want := fmt.Sprintf(`%s Apply {"f:metadata":{"f:annotations":{"f:%[1]s":{}}}}`, name); len(applied) != managers || applied[m] != want {
			t.Errorf("the managers are %q, want %q", applied, want)
		}
	}
}

// The metadata client patches only metadata, and receives only metadata.
func TestClientGoMetadataPatch(t *testing.T) {
	hello := start(t)
	post(t, typed(t, hello.Config()), newWidget("alpha", 1))
	ctx := withCheckedLog(t)
	client, err := metadata.NewForConfig(hello.Config())
	if err != nil {
		t.Fatal(err)
	}
	in := client.Resource(widgets).Namespace(namespace)
	for kind, body := range map[types.PatchType]string{
		types.MergePatchType:          `{"metadata":{"labels":{"merge":"yes"}}}`,
		types.StrategicMergePatchType: `{"metadata":{"labels":{"strategic":"yes"}}}`,
		types.ApplyPatchType:          `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"alpha","labels":{"apply":"yes"}}}`,
	} {
		got, err := in.Patch(ctx, "alpha", kind, []byte(body), metav1.PatchOptions{FieldManager: "labeller"})
		if err != nil || got.Name != "alpha" || got.Generation != 1 {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
	got, err := in.Patch(ctx, "alpha", types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/labels/merge"}]`), metav1.PatchOptions{FieldManager: "labeller"})
	if err != nil || fmt.Sprint(got.Labels) != "map[apply:yes strategic:yes]" || got.Generation != 1 {
		t.Errorf("patched to %+v, %v", got, err)
	}
	w := new(Widget)
	if err := typed(t, hello.Config()).Get().Namespace(namespace).Resource("widgets").Name("alpha").Do(ctx).Into(w); err != nil || w.Spec.Size != 1 || w.Labels["strategic"] != "yes" {
		t.Errorf("got %+v, %v", w, err)
	}
}

// An object written by updates is handed over to server-side apply. After that, a field that is no longer applied is removed.
func TestClientGoUpgradeFromClientSideApply(t *testing.T) {
	kube := serveKubernetes(t)
	ctx, client := withCheckedLog(t), kube.clientset(t).CoreV1().ConfigMaps(kube.namespace)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Annotations: map[string]string{lastApplied: "{}"}}, Data: map[string]string{"a": "1", "b": "1"}}
	created, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: "old"})
	if err != nil {
		t.Fatal(err)
	}
	upgrade := func(of *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(of, sets.New("old"), "new")
		if err != nil || patch == nil {
			t.Fatalf("the patch is %s, %v", patch, err)
		}
		return client.Patch(ctx, of.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
	}
	moved, err := client.Patch(ctx, "settings", types.MergePatchType, []byte(`{"data":{"c":"1"}}`), metav1.PatchOptions{FieldManager: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := upgrade(created); !apierrors.IsConflict(err) {
		t.Errorf("upgrading an old version: %v, want a conflict", err)
	}
	upgraded, err := upgrade(moved)
	if err != nil {
		t.Fatal(err)
	}
	wantManagers(t, asUnstructured(t, upgraded, "v1"),
		`new Apply {"f:data":{".":{},"f:a":{},"f:b":{}},"f:metadata":{"f:annotations":{".":{},"f:`+lastApplied+`":{}}}}`, `other Update {"f:data":{"f:c":{}}}`)

	config := corev1apply.ConfigMap("settings", kube.namespace).WithData(map[string]string{"a": "2"})
	got, err := client.Apply(ctx, config, metav1.ApplyOptions{FieldManager: "new"})
	if err != nil || fmt.Sprint(got.Data) != "map[a:2 c:1]" {
		t.Errorf("applied %v, %v", got, err)
	}
}

// A typed client for a custom kind applies a body of its own. The server accepts JSON, although the media type says YAML.
func TestClientGoTypedApply(t *testing.T) {
	hello := start(t)
	ctx, client := withCheckedLog(t), typed(t, hello.Config())
	apply := func(ctx context.Context, body string, subresource ...string) (*Widget, error) {
		t.Helper()
		out := new(Widget)
		return out, client.Patch(types.ApplyYAMLPatchType).Namespace(namespace).Resource("widgets").Name("alpha").SubResource(subresource...).
			VersionedParams(&metav1.PatchOptions{FieldManager: "mine"}, parameters(t)).Body([]byte(body)).Do(ctx).Into(out)
	}
	in, err := json.Marshal(map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "alpha"}, "spec": map[string]any{"size": 1}})
	if err != nil {
		t.Fatal(err)
	}
	created, err := apply(ctx, string(in))
	if err != nil || created.Spec.Size != 1 || len(created.ManagedFields) != 1 || created.ManagedFields[0].Time == nil {
		t.Fatalf("applied %+v, %v", created, err)
	}
	same, err := apply(ctx, widget("alpha", "size: 1 # in YAML"))
	if err != nil || same.ResourceVersion != created.ResourceVersion {
		t.Errorf("applied %+v, %v", same, err)
	}
	if got, err := apply(ctx, `{"apiVersion":"example.com/v1","kind":"Widget","status":{"ready":true}}`, "status"); err != nil || !got.Status.Ready {
		t.Errorf("applied %+v, %v", got, err)
	}
	for body, want := range map[string]string{
		`{"apiVersion":"example.com/v2","kind":"Widget"}`: "invalid object type: example.com/v2, Kind=Widget",
		`{"kind":"Widget"}`: "invalid object type: /, Kind=Widget",
		"[":                 "error encoding patch: yaml: line 1: did not find expected node content",
	} {
		if _, err := apply(ctx, body); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("applying %s: %v, want a bad request: %s", body, err, want)
		}
	}
}
