package clienttest_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest/internal/website"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// cborClients are environment variables of a process whose clients use CBOR. client-go reads them once, for all clients.
var cborClients = []string{"KUBE_FEATURE_ClientsAllowCBOR=true", "KUBE_FEATURE_ClientsPreferCBOR=true"}

// TestCBORClients runs the tests of clients that use CBOR in another process.
func TestCBORClients(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInCBOR", "-test.v")
	cmd.Env = append(os.Environ(), cborClients...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if passed := strings.Count(string(out), "--- PASS: TestInCBOR"); err != nil || passed != 4 || strings.Contains(string(out), "SKIP") {
		t.Errorf("%d tests passed: %v", passed, err)
	}
}

// onlyInCBOR skips a test in a process whose clients do not use CBOR.
func onlyInCBOR(t *testing.T) {
	t.Helper()
	t.Parallel()
	for _, f := range []features.Feature{features.ClientsAllowCBOR, features.ClientsPreferCBOR} {
		if !features.FeatureGates().Enabled(f) {
			t.Skip("is for a process whose clients speak CBOR: see TestCBORClients")
		}
	}
}

// wire records the media types of bodies and answers, each once.
type wire struct {
	mu        sync.Mutex // guards sent and got
	sent, got map[string][]string
}

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			note(w.sent, r, r.Header.Get("Content-Type"))
			note(w.got, r, resp.Header.Get("Content-Type"))
		}
		return resp, err
	})
}

func note(seen map[string][]string, r *http.Request, mediaType string) {
	what := r.Method
	if r.URL.Query().Has("watch") {
		what = "WATCH"
	}
	if mediaType != "" && !slices.Contains(seen[what], mediaType) {
		seen[what] = append(seen[what], mediaType)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// expect compares the recorded media types.
func (w *wire) expect(t *testing.T, sent, got map[string][]string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !reflect.DeepEqual(w.sent, sent) || !reflect.DeepEqual(w.got, got) {
		t.Errorf("sent %v, want %v; got %v, want %v", w.sent, sent, w.got, got)
	}
}

func cborServer(t *testing.T, on bool) (*rest.Config, *wire) {
	t.Helper()
	srv := servertest.Start(t, server.Options{CBOR: on}, builtin.New(builtin.Options{}), websites())
	w, c := &wire{sent: map[string][]string{}, got: map[string][]string{}}, clienttest.Config(srv)
	c.Wrap(w.wrap)
	return c, w
}

// typedInCBOR returns a copy of c for clients of Go types with protobuf, which client-go prefers to CBOR by default.
func typedInCBOR(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.ContentType, c.AcceptContentTypes = inCBOR, inCBOR+","+inJSON+";q=0.5"
	return c
}

const (
	inCBOR  = "application/cbor"
	asSeq   = "application/cbor-seq"
	applied = "application/apply-patch+cbor"
	inJSON  = "application/json"
)

// Clients with Go types use CBOR for all bodies, also with byte slices.
func TestInCBORTypedClient(t *testing.T) {
	onlyInCBOR(t)
	c, w := cborServer(t, true)
	ctx, set := t.Context(), newClientset(t, typedInCBOR(c))
	secrets := set.CoreV1().Secrets("default")
	data := map[string][]byte{"a": {0, 0xff, 0xfe}, "b": []byte("text"), "c": {}}
	odd := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"é": ""}}, Data: data}
	if _, err := secrets.Create(ctx, odd, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a bad label: %v", err)
	}
	made, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: data}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(made.Data, data) || made.UID == "" || made.CreationTimestamp.IsZero() || len(made.ManagedFields) != 1 {
		t.Errorf("made %+v", made)
	}
	made.Data["b"] = []byte("changed")
	if _, err := secrets.Update(ctx, made, metav1.UpdateOptions{FieldValidation: "Strict"}); err != nil {
		t.Error(err)
	}
	if _, err := secrets.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a stale update: %v", err)
	}
	list, err := secrets.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || string(list.Items[0].Data["b"]) != "changed" || list.ResourceVersion == "" {
		t.Errorf("%+v, %v", list, err)
	}
	got, err := secrets.Apply(ctx, corev1apply.Secret("a", "default").WithLabels(map[string]string{"on": "yes"}).WithData(map[string][]byte{"d": {1}}), metav1.ApplyOptions{FieldManager: "me"})
	if err != nil || got.Labels["on"] != "yes" || string(got.Data["d"]) != "\x01" || string(got.Data["b"]) != "changed" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := secrets.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"d":null}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	events, err := secrets.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{4, 3} {
		if s, ok := (<-events.ResultChan()).Object.(*corev1.Secret); !ok || len(s.Data) != want {
			t.Errorf("event %d: %+v", i, s)
		}
	}
	events.Stop()
	wrong := types.UID("x")
	if err := secrets.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}}); !apierrors.IsConflict(err) {
		t.Errorf("deletion of another one: %v", err)
	}
	if err := secrets.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := secrets.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("read after it was deleted: %v", err)
	}
	w.expect(t, map[string][]string{"POST": {inCBOR}, "PUT": {inCBOR}, "PATCH": {applied, string(types.MergePatchType)}, "DELETE": {inCBOR}},
		map[string][]string{"POST": {inCBOR}, "PUT": {inCBOR}, "PATCH": {inCBOR}, "DELETE": {inCBOR}, "GET": {inCBOR}, "WATCH": {asSeq}})
}

// Clients without Go types do so too, for kinds with and without protobuf, and clients for metadata.
func TestInCBORDynamicClient(t *testing.T) {
	onlyInCBOR(t)
	c, w := cborServer(t, true)
	ctx := t.Context()
	all, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	sites := all.Resource(website.GroupVersion().WithResource("websites")).Namespace("default")
	site := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": website.GroupVersion().String(), "kind": "Website", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"replicas": int64(2), "pages": map[string]any{"index.html": "<é>"}},
	}}
	made, err := sites.Create(ctx, site, metav1.CreateOptions{FieldValidation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	pages, _, _ := unstructured.NestedStringMap(made.Object, "spec", "pages")
	if n, _, _ := unstructured.NestedInt64(made.Object, "spec", "replicas"); n != 2 || pages["index.html"] != "<é>" || made.GetUID() == "" {
		t.Errorf("made %v", made.Object)
	}
	odd := site.DeepCopy()
	odd.SetName("b")
	odd.Object["nope"] = map[string]any{}
	if _, err := sites.Create(ctx, odd, metav1.CreateOptions{FieldValidation: "Strict"}); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "nope"`) {
		t.Errorf("a field that there is not: %v", err)
	}
	config := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": website.GroupVersion().String(), "kind": "Website", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"replicas": int64(3)},
	}}
	if _, err := sites.Apply(ctx, "a", config, metav1.ApplyOptions{FieldManager: "me"}); !apierrors.IsConflict(err) {
		t.Errorf("applied over another manager: %v", err)
	}
	got, err := sites.Apply(ctx, "a", config, metav1.ApplyOptions{FieldManager: "me", Force: true})
	if n, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas"); err != nil || n != 3 {
		t.Errorf("applied: %v, %v", got, err)
	}
	if _, err := sites.Apply(ctx, "new", func() *unstructured.Unstructured { n := config.DeepCopy(); n.SetName("new"); return n }(), metav1.ApplyOptions{FieldManager: "me"}); err != nil {
		t.Error(err)
	}
	list, err := sites.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 || list.GetKind() != "WebsiteList" || list.Items[0].GetKind() != "Website" {
		t.Errorf("%v, %v", list, err)
	}
	page, err := sites.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(page.Items) != 1 || page.GetContinue() == "" {
		t.Errorf("%v, %v", page, err)
	}
	names, err := metadata.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	known, err := names.Resource(website.GroupVersion().WithResource("websites")).Namespace("default").List(ctx, metav1.ListOptions{})
	if err != nil || len(known.Items) != 2 || known.Items[0].Name != "a" {
		t.Errorf("%v, %v", known, err)
	}
	if err := sites.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if list, err = sites.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if want := []string{inCBOR}; !reflect.DeepEqual(w.got["POST"], want) || !reflect.DeepEqual(w.sent["POST"], want) || !reflect.DeepEqual(w.got["PATCH"], want) || !reflect.DeepEqual(w.sent["PATCH"], []string{applied}) || !slices.Contains(w.got["GET"], inCBOR) {
		t.Errorf("sent %v, got %v", w.sent, w.got)
	}
}

// Informers use sequences of CBOR for lists and watches.
func TestInCBORInformers(t *testing.T) {
	onlyInCBOR(t)
	c, w := cborServer(t, true)
	set := newClientset(t, typedInCBOR(c))
	all, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	post := func(name string) {
		t.Helper()
		m := configMap(name)
		m.Data, m.BinaryData = map[string]string{"k": "é"}, map[string][]byte{"b": {0xff}}
		if _, err := set.CoreV1().ConfigMaps("default").Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	post("a")
	post("b")
	seen := map[string]chan string{"typed": nil, "dynamic": nil}
	ctx, stop := context.WithCancel(t.Context())
	typed, untyped := informers.NewSharedInformerFactory(set, 0), dynamicinformer.NewDynamicSharedInformerFactory(all, 0)
	defer typed.Shutdown()
	defer untyped.Shutdown()
	defer stop()
	for what, informer := range map[string]cache.SharedIndexInformer{
		"typed":   typed.Core().V1().ConfigMaps().Informer(),
		"dynamic": untyped.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer(),
	} {
		names := make(chan string, 10)
		seen[what] = names
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { names <- shownMap(obj) }}); err != nil {
			t.Fatal(err)
		}
	}
	typed.StartWithContext(ctx)
	untyped.Start(ctx.Done())
	for what, names := range seen {
		got := []string{<-names, <-names}
		slices.Sort(got)
		if !slices.Equal(got, []string{"a é /w==", "b é /w=="}) {
			t.Errorf("%s: seen were %v", what, got)
		}
	}
	post("c")
	for what, names := range seen {
		if got := <-names; got != "c é /w==" {
			t.Errorf("%s: then %s", what, got)
		}
	}
	w.expect(t, map[string][]string{"POST": {inCBOR}}, map[string][]string{"POST": {inCBOR}, "WATCH": {asSeq}})
}

// shownMap returns a short form of an informer's ConfigMap, the same with and without a Go type.
func shownMap(obj any) string {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err.Error()
	}
	u := unstructured.Unstructured{Object: object}
	text, _, _ := unstructured.NestedString(object, "data", "k")
	binary, _, _ := unstructured.NestedString(object, "binaryData", "b")
	return fmt.Sprintf("%s %s %s", u.GetName(), text, binary)
}

// After one refusal by a server without CBOR, the client writes JSON.
func TestInCBORServerWithoutIt(t *testing.T) {
	onlyInCBOR(t)
	c, w := cborServer(t, false)
	maps := newClientset(t, typedInCBOR(c)).CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("the first time: %v", err)
	}
	if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if list, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	w.expect(t, map[string][]string{"POST": {inCBOR, inJSON}}, map[string][]string{"POST": {inJSON}, "GET": {inJSON}})
}
