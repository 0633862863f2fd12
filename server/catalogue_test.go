package server_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
	if _, err := registry.For[*Widget](reg, authn.System()); err != nil {
		t.Error(err)
	}
}

// For a kind that is withdrawn no object may count as absent: the garbage collector would delete the objects that it owns.
func TestCatalogueOfWithdrawnKinds(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	h := host(t, srv)
	call(t, srv.Client(), "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"},"spec":{"color":"red"}}`)
	ctx, objects := t.Context(), h.Catalogue().Kinds()[0].Objects
	if _, err := objects.Get(ctx, "default", "a"); err != nil {
		t.Fatal(err)
	}
	if err := h.Withdraw(widgetsResource()); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"get": second(objects.Get(ctx, "default", "a")), "get of none": second(objects.Get(ctx, "default", "b")),
		"list": second(objects.List(ctx, "")), "watch": second(objects.Watch(ctx)), "delete": objects.Delete(ctx, "default", "a", nil),
		"change": objects.Change(ctx, "default", "a", func(metav1.Object) error { return nil }),
	} {
		if !errors.Is(err, storage.ErrClosed) {
			t.Errorf("%s: %v, want storage.ErrClosed", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// drops is a computed storage that supports list, watch, update and delete, and no other verbs.
type drops struct{ moons }

func (drops) Watch(call *registry.Call, opts *metav1.ListOptions) (registry.ObjectWatch, error) {
	if call.Policy == nil {
		return nil, errors.New("nothing decides about the call")
	}
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
