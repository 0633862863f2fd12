package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// host lends a test what an extension may do; the library promises it until Install returns only.
func host(t *testing.T, srv *servertest.Server) *server.Host {
	t.Helper()
	var host *server.Host
	if err := srv.Install(server.ExtensionFunc(func(h *server.Host) error { host = h; return nil })); err != nil {
		t.Fatal(err)
	}
	return host
}

func widgetsResource() schema.GroupResource {
	return schema.GroupResource{Group: "example.com", Resource: "widgets"}
}

func defaultColor(color string) func(w *Widget) {
	return func(w *Widget) { w.Spec.Color = cmp.Or(w.Spec.Color, color) }
}

func TestWithdraw(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, clockGroup())
	h := host(t, srv)
	defaults := widgets()
	defaults.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{Default: defaultColor("blue")})
	if err := h.Serve(defaults); err != nil {
		t.Fatal(err)
	}
	c := srv.Client()
	ask := func(method, path, body string) answer { t.Helper(); return roundTrip(t, c, method, srv.URL+path, body) }
	ask("POST", widgetsPath, `{"metadata":{"name":"a"}}`).want(t, 201)
	clocksBefore := ask("GET", "/openapi/v3/apis/time.example.com/v1", "").body
	watch, err := c.Get(srv.URL + widgetsPath + "?watch=true&resourceVersion=0")
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"clocks.example.com", "widgets"} {
		if err := h.Withdraw(widgetsResource(), schema.ParseGroupResource(wrong)); err == nil || !strings.Contains(err.Error(), wrong+" is not served") {
			t.Errorf("withdraw %s: %v", wrong, err)
		}
	}
	if err := h.Withdraw(widgetsResource()); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(watch.Body)
	if err != nil || strings.Contains(string(text), "ERROR") {
		t.Errorf("the watch did not end cleanly: %v %s", err, text)
	}
	_ = watch.Body.Close()
	ask("GET", widgetsPath+"/a", "").want(t, 404)
	ask("GET", "/apis/example.com/v1", "").want(t, 404)
	ask("GET", "/openapi/v3/apis/example.com/v1", "").want(t, 404)
	for _, path := range []string{"/", "/apis", "/openapi/v2", "/openapi/v3"} {
		if body := ask("GET", path, "").body; strings.Contains(body, "example.com/v1/widgets") || strings.Contains(body, `"example.com"`) || strings.Contains(body, "apis/example.com") {
			t.Errorf("%s still shows it: %.300s", path, body)
		}
	}
	if after := ask("GET", "/openapi/v3/apis/time.example.com/v1", "").body; after != clocksBefore {
		t.Error("the document of another group changed")
	}
	// Its names and its objects are free for what comes next, which has other defaults.
	defaults.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{Default: defaultColor("red")})
	if err := h.Serve(defaults); err != nil {
		t.Fatal(err)
	}
	ask("POST", widgetsPath, `{"metadata":{"name":"b"}}`).want(t, 201)
	for name, color := range map[string]string{"a": "blue", "b": "red"} {
		var w Widget
		ask("GET", widgetsPath+"/"+name, "").into(t, &w)
		if w.Spec.Color != color {
			t.Errorf("%s is %s, want %s", name, w.Spec.Color, color)
		}
	}
}

// Groups come and go while clients ask: nobody gets a 5xx, and what is served at the end is whole.
func TestWithdrawUnderTraffic(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	h := host(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			c := srv.Client()
			for i := 0; ctx.Err() == nil; i++ {
				for _, a := range []answer{
					roundTrip(t, c, "GET", srv.URL+widgetsPath, ""),
					roundTrip(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"generateName":"x-"}}`),
					roundTrip(t, c, "GET", srv.URL+"/apis", ""),
				} {
					if a.code >= 500 && a.code != http.StatusServiceUnavailable {
						t.Errorf("%d %s", a.code, a.body)
					}
				}
			}
		})
	}
	for range 20 {
		if err := errors.Join(h.Serve(widgets()), h.Withdraw(widgetsResource())); err != nil {
			t.Error(err)
			break
		}
	}
	cancel()
	asking.Wait()
	if err := h.Serve(widgets()); err != nil {
		t.Fatal(err)
	}
	code, body := call(t, srv.Client(), "GET", srv.URL+widgetsPath, "")
	wantCode(t, 200, code, body)
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, clockGroup())
	h := host(t, srv)
	c := h.Catalogue()
	changed := c.Changed()
	if err := h.Serve(widgets()); err != nil {
		t.Fatal(err)
	}
	<-changed
	var got []string
	kinds := c.Kinds()
	for _, k := range kinds {
		got = append(got, fmt.Sprint(k.Resource, k.Kind, k.Kinds, k.Namespaced, k.Verbs))
	}
	widget, clock := schema.FromAPIVersionAndKind("example.com/v1", "Widget"), schema.FromAPIVersionAndKind("time.example.com/v1", "Clock")
	want := []string{
		fmt.Sprint(widget.GroupVersion().WithResource("widgets"), widget, []schema.GroupVersionKind{widget}, true, " ", "[create delete deletecollection get list patch update watch]"),
		fmt.Sprint(clock.GroupVersion().WithResource("clocks"), clock, []schema.GroupVersionKind{clock}, true, " ", "[get watch]"),
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	ctx, objects := t.Context(), kinds[0].Objects
	w, err := objects.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	call(t, srv.Client(), "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a","labels":{"l":"1"},"ownerReferences":[{"apiVersion":"v1","kind":"Y","name":"y","uid":"u"}]},"spec":{"color":"red"}}`)
	m, err := objects.Get(ctx, "default", "a")
	if err != nil || m.Kind != "Widget" || m.UID == "" || m.OwnerReferences[0].UID != "u" || m.Labels["l"] != "1" || m.ManagedFields != nil {
		t.Fatalf("%v %+v", err, m)
	}
	if err := objects.Change(ctx, "default", "a", func(m metav1.Object) error { m.SetFinalizers([]string{"x.org/f"}); return nil }); err != nil {
		t.Fatal(err)
	}
	list, err := objects.List(ctx, "")
	if err != nil || len(list) != 1 || list[0].Finalizers[0] != "x.org/f" {
		t.Fatalf("%v %+v", err, list)
	}
	other := "other"
	if err := objects.Delete(ctx, "default", "a", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &other}}); !apierrors.IsConflict(err) {
		t.Errorf("delete with a precondition: %v", err)
	}
	if err := objects.Delete(ctx, "default", "a", nil); err != nil {
		t.Error(err)
	}
	if err := objects.Change(ctx, "default", "a", func(m metav1.Object) error { m.SetFinalizers(nil); return nil }); err != nil {
		t.Error(err)
	}
	if _, err := objects.Get(ctx, "default", "a"); !apierrors.IsNotFound(err) {
		t.Errorf("get: %v", err)
	}
	var events []string
	for len(events) < 5 {
		batch, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch {
			events = append(events, fmt.Sprint(e.Type, " ", e.Object.Name, " ", len(e.Object.Finalizers), " ", e.Object.DeletionTimestamp != nil))
		}
	}
	if diff := gocmp.Diff([]string{"BOOKMARK  0 false", "ADDED a 0 false", "MODIFIED a 1 false", "MODIFIED a 1 true", "DELETED a 1 true"}, events); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	clocks := kinds[1].Objects
	if m, err := clocks.Get(ctx, "default", "noon"); err != nil || m.Name != "noon" || m.Kind != "Clock" {
		t.Errorf("computed: %v %+v", err, m)
	}
	for verb, err := range map[string]error{
		"list": second(clocks.List(ctx, "")), "watch": second(clocks.Watch(ctx)), "delete": clocks.Delete(ctx, "default", "noon", nil),
		"change": clocks.Change(ctx, "default", "noon", func(metav1.Object) error { return nil }),
	} {
		if !apierrors.IsMethodNotSupported(err) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if _, err := h.Registry(schema.GroupResource{Group: "time.example.com", Resource: "clocks"}); err == nil || !strings.Contains(err.Error(), "Storage of its own") {
		t.Errorf("registry of clocks: %v", err)
	}
	reg, err := h.Registry(widgetsResource())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry.For[*Widget](reg); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

// drops is computed and can be listed, watched, updated and deleted, as few are.
type drops struct{ moons }

func (drops) Watch(_ context.Context, opts *metav1.ListOptions) (registry.ObjectWatch, error) {
	return &ticks{left: 1}, nil
}

func TestCatalogueOfComputedObjects(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, server.Group{Name: "sky.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Moon", server.KindOptions[*Moon]{ClusterScoped: true, Storage: drops{}}),
	}}}})
	objects := host(t, srv).Catalogue().Kinds()[0].Objects
	list, err := objects.List(t.Context(), "")
	if err != nil || len(list) == 0 {
		t.Fatalf("%v %v", list, err)
	}
	w, err := objects.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	first, err := w.Next(t.Context())
	if err != nil || len(first) != len(list)+1 || first[len(list)].Type != "BOOKMARK" {
		t.Fatalf("%v %v", first, err)
	}
	if next, err := w.Next(t.Context()); err != nil || next[0].Object.Name != "tick-0" {
		t.Errorf("%v %v", next, err)
	}
	if _, err := w.Next(t.Context()); !apierrors.IsResourceExpired(err) {
		t.Errorf("the end of the watch: %v", err)
	}
}

func TestAdmitLater(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets(), clockGroup())
	c := srv.Client()
	code, body := call(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
	wantCode(t, 201, code, body)
	h := host(t, srv)
	h.AdmitFirst(admission.Chain{Mutators: []admission.Mutator{admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
		if w, ok := r.Object.(*Widget); ok {
			w.Spec.Color = "first"
		}
		return nil
	})}})
	h.Admit(admission.Chain{
		Mutators: []admission.Mutator{admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
			if w, ok := r.Object.(*Widget); ok {
				w.Spec.Color = "admitted"
			}
			return nil
		})},
		Validators: []admission.Validator{admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
			if r.Operation == admission.Delete || r.Operation == admission.Connect {
				return errors.New("not today")
			}
			return nil
		})},
	})
	code, body = call(t, c, "PUT", srv.URL+widgetsPath+"/a", `{"metadata":{"name":"a"}}`)
	wantCode(t, 200, code, body)
	if !strings.Contains(body, "admitted") {
		t.Errorf("not mutated: %s", body)
	}
	for _, path := range []string{widgetsPath + "/a", clocksPath + "/noon/bell"} {
		code, body = call(t, c, map[bool]string{true: "DELETE", false: "POST"}[path == widgetsPath+"/a"], srv.URL+path, "")
		wantCode(t, 403, code, body)
	}
}

func TestCollectGarbageLater(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	c := srv.Client()
	for _, name := range []string{"before", "after"} {
		code, body := call(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"`+name+`"}}`)
		wantCode(t, 201, code, body)
		code, body = call(t, c, "DELETE", srv.URL+widgetsPath+"/"+name+"?propagationPolicy=Orphan", "")
		wantCode(t, 200, code, body)
		if kept := strings.Contains(body, `"finalizers":["orphan"]`); kept != (name == "after") {
			t.Errorf("%s: %s", name, body)
		}
		host(t, srv).CollectGarbage()
	}
}

func TestVerbsOfAKind(t *testing.T) {
	t.Parallel()
	group := widgets()
	verbs := []string{"create", "get", "list", "patch", "delete"}
	group.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{Verbs: verbs})
	srv := servertest.New(t, group)
	c := srv.Client()
	var list metav1.APIResourceList
	_, body := call(t, c, "GET", srv.URL+"/apis/example.com/v1", "")
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(list.APIResources[0].Verbs); got != "[create delete get list patch]" {
		t.Errorf("discovery: %s", got)
	}
	code, body := call(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
	wantCode(t, 201, code, body)
	code, body = call(t, c, "PATCH", srv.URL+widgetsPath+"/a", `{"spec":{"size":3}}`, "Content-Type", "application/merge-patch+json")
	wantCode(t, 200, code, body)
	for method, path := range map[string]string{"PUT": widgetsPath + "/a", "DELETE": widgetsPath, "GET": widgetsPath + "?watch=true"} {
		code, body = call(t, c, method, srv.URL+path, `{"metadata":{"name":"a"}}`)
		wantCode(t, 405, code, body)
	}
	code, body = call(t, c, "DELETE", srv.URL+widgetsPath+"/a", "")
	wantCode(t, 200, code, body)

	group.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{Verbs: []string{"get", "fetch"}})
	if _, err := server.New(server.Options{Groups: []server.Group{group}}); err == nil || !strings.Contains(err.Error(), `no verb "fetch"`) ||
		!strings.Contains(err.Error(), "want some of create, delete, deletecollection, get, list, patch, update, watch") {
		t.Errorf("a verb there is not: %v", err)
	}
}

func TestTTLOfAKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		group := widgets()
		group.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{TTL: time.Hour})
		srv, err := server.New(server.Options{Groups: []server.Group{group}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = srv.Close() }()
		var h *server.Host
		_ = srv.Install(server.ExtensionFunc(func(host *server.Host) error { h = host; return nil }))
		reg, err := h.Registry(widgetsResource())
		if err != nil {
			t.Fatal(err)
		}
		typed, err := registry.For[*Widget](reg)
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		if _, err := typed.Create(ctx, "default", &Widget{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		change := func(size int32) {
			t.Helper()
			if _, err := typed.Change(ctx, "default", "a", func(w *Widget) error { w.Spec.Size = size; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(50 * time.Minute)
		change(1)
		time.Sleep(50 * time.Minute)
		change(1) // changes nothing
		time.Sleep(11 * time.Minute)
		if _, err := typed.Get(ctx, "default", "a"); !apierrors.IsNotFound(err) {
			t.Errorf("an hour after its last change: %v", err)
		}
	})
}

func TestFinalizingKind(t *testing.T) {
	t.Parallel()
	group := widgets()
	group.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{Strategy: registry.Strategy[*Widget]{
		Terminate: func(_ context.Context, w *Widget, now metav1.Time) bool {
			if w.DeletionTimestamp == nil {
				w.DeletionTimestamp, w.Status.Ready = &now, false
				return true
			}
			return w.Spec.Size > 0
		},
		Finalizing: func(w *Widget) bool { return w.Spec.Size > 0 },
	}})
	srv := servertest.New(t, group)
	ask := func(method, path, body string) answer {
		return roundTrip(t, srv.Client(), method, srv.URL+path, body)
	}
	ask("POST", widgetsPath, `{"metadata":{"name":"a"},"spec":{"size":2}}`).want(t, 201)
	ask("PUT", widgetsPath+"/a/status", `{"metadata":{"name":"a"},"status":{"ready":true}}`).want(t, 200)
	var w Widget
	ask("DELETE", widgetsPath+"/a", "").into(t, &w)
	if w.DeletionTimestamp == nil || w.Status.Ready {
		t.Errorf("not prepared: %+v", w)
	}
	ask("PUT", widgetsPath+"/a", `{"metadata":{"name":"a"},"spec":{"size":1}}`).want(t, 200)
	ask("GET", widgetsPath+"/a", "").want(t, 200)
	ask("PUT", widgetsPath+"/a", `{"metadata":{"name":"a"},"spec":{"size":0}}`).want(t, 200)
	ask("GET", widgetsPath+"/a", "").want(t, 404)
	ask("POST", widgetsPath, `{"metadata":{"name":"b"}}`).want(t, 201)
	ask("DELETE", widgetsPath+"/b", "").want(t, 200)
	ask("GET", widgetsPath+"/b", "").want(t, 200)
	ask("DELETE", widgetsPath+"/b", `{"preconditions":{"uid":"x"}}`).want(t, 409)
	ask("DELETE", widgetsPath+"/b", "").want(t, 200)
	ask("GET", widgetsPath+"/b", "").want(t, 404)
}

// Barge has its columns in struct tags.
type Barge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Load int64  `json:"load" print:"Load"`
		Quay string `json:"quay" print:"Quay,wide"`
	} `json:"spec"`
}

func (b *Barge) DeepCopyObject() runtime.Object { return runtime.DeepCopy(b) }

func TestPrintTags(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, server.Group{Name: "sea.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Barge", server.KindOptions[*Barge]{ClusterScoped: true}),
	}}}})
	c := srv.Client()
	code, body := call(t, c, "POST", srv.URL+"/apis/sea.example.com/v1/barges", `{"metadata":{"name":"a"},"spec":{"load":7,"quay":"west"}}`)
	wantCode(t, 201, code, body)
	var table metav1.Table
	_, body = call(t, c, "GET", srv.URL+"/apis/sea.example.com/v1/barges", "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if err := json.Unmarshal([]byte(body), &table); err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, d := range table.ColumnDefinitions {
		columns = append(columns, fmt.Sprint(d.Name, " ", d.Type, " ", d.Format, " ", d.Priority))
	}
	if diff := gocmp.Diff([]string{"Name string name 0", "Load integer  0", "Quay string  1", "Age date  0"}, columns); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if cells := table.Rows[0].Cells; cells[0] != "a" || cells[1] != 7.0 || cells[2] != "west" {
		t.Errorf("cells %v", cells)
	}
	type Wrong struct {
		Load map[string]string `json:"load" print:"Load"`
	}
	_, err := server.New(server.Options{Groups: []server.Group{{Name: "sea.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Tug", server.KindOptions[*runtime.Resource[Wrong, struct{}]]{}),
	}}}}}})
	if err == nil || !strings.Contains(err.Error(), "spec.load") || !strings.Contains(err.Error(), "no cell can show") {
		t.Errorf("a wrong tag: %v", err)
	}
}
