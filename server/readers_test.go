package server_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var widgetGVK = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// TestReader checks that a Reader returns what requests have written, with the errors that requests get, until the kind is
// withdrawn.
func TestReader(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	h := host(t, srv)
	early := srv.Readers().Reader(widgetGVK)
	if _, err := early.Get(t.Context(), "default", "a", runtime.Freshness{}); !errors.Is(err, runtime.ErrNotReady) {
		t.Errorf("before it is served: %v, want ErrNotReady", err)
	}
	if err := h.Serve(widgets()); err != nil {
		t.Fatal(err)
	}
	typed := runtime.Read[*Widget](h.Readers())
	for i := range 20 {
		name := fmt.Sprint("w", i)
		code, body := call(t, srv.Client(), "POST", srv.URL+widgetsPath, widget(i))
		wantCode(t, 201, code, body)
		l, err := typed.List(t.Context(), runtime.Query{Namespace: "default"})
		if err != nil || len(l.Items) != i+1 || l.Revision < early.Changed().Revision {
			t.Fatalf("after %s was created: %d objects at %d, %v", name, len(l.Items), l.Revision, err)
		}
	}
	l, err := typed.List(t.Context(), runtime.Query{})
	if err != nil {
		t.Fatal(err)
	}
	first := l.Items[0]
	if one, err := early.Get(t.Context(), first.Namespace, first.Name, runtime.Freshness{}); err != nil || one != runtime.Object(first) {
		t.Errorf("Get: %v, %v, want the object of the list", one, err)
	}
	if _, err := early.Get(t.Context(), "default", "none", runtime.Freshness{}); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `widgets.example.com "none"`) {
		t.Errorf("of what is not there: %v", err)
	}
	if _, err := typed.Get(t.Context(), "", first.Name, runtime.Freshness{}); err == nil || !strings.Contains(err.Error(), "the kind is namespaced") {
		t.Errorf("without its namespace: %v", err)
	}
	if c, err := typed.Changes(t.Context(), l.Revision, runtime.Freshness{}); err != nil || c.Reset || len(c.All) != 0 {
		t.Errorf("Changes: %+v, %v", c, err)
	}
	if err := h.Withdraw(widgetsResource()); err != nil {
		t.Fatal(err)
	}
	_, err = early.List(t.Context(), runtime.Query{})
	if _, ok := srv.Readers().KindOf(reflect.TypeFor[Widget]()); ok || !errors.Is(err, runtime.ErrNotReady) || early.Changed().Revision != 0 {
		t.Errorf("after Withdraw: %v, Changed is %v, its Go type is known: %v", err, early.Changed(), ok)
	}
	if err := h.Serve(widgets()); err != nil {
		t.Fatal(err)
	}
	if c, err := early.Changes(t.Context(), l.Revision, runtime.Freshness{}); err != nil || !c.Reset || len(c.All) != 20 {
		t.Errorf("served again: %d changes (reset %v), %v; want a Reset with 20", len(c.All), c.Reset, err)
	}
}

// TestReaderOfVersions checks that the Reader of every version returns objects in the hub version.
func TestReaderOfVersions(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, shapes(nil, specFields{"a": nil}, specFields{"a": nil}))
	untypedAsk(t, srv, "POST", shapePath(2), "application/json", shape(2, "x", `,"spec":{"a":"1"}`), 201)
	for _, version := range []string{"v1", "v2"} {
		obj, err := runtime.ReadKind(srv.Readers(), shapeKind(version)).Get(t.Context(), "default", "x", runtime.Freshness{})
		if err != nil || obj.GetObjectKind().GroupVersionKind() != shapeKind("v1") {
			t.Errorf("%s: %v, %v", version, obj, err)
		}
	}
	if _, ok := srv.Readers().KindOf(reflect.TypeFor[unstructured.Unstructured]()); ok {
		t.Error("the Go type of all kinds without one is a kind's")
	}
}

func shapeKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "shapes.example.com", Version: version, Kind: "Shape"}
}

// shapeIndex is an index that a policy could have: the default of c, by the name of the shape.
type shapeIndex struct {
	changed  runtime.LastChange
	revision int64
	c        map[string]string
}

// update brings the index up to date if something has changed.
func (x *shapeIndex) update(ctx context.Context, r runtime.Reader[runtime.Object]) error {
	changed := r.Changed()
	if changed == x.changed && changed.Revision != 0 {
		return nil
	}
	c, err := r.Changes(ctx, x.revision, runtime.Freshness{})
	if err != nil {
		return err
	}
	if c.Reset {
		x.c = map[string]string{}
	}
	for _, one := range c.All {
		if one.Deleted {
			delete(x.c, one.Name)
			continue
		}
		x.c[one.Name] = shapeDefault(one.Object)
	}
	x.changed, x.revision = changed, c.Revision
	return nil
}

func shapeDefault(obj runtime.Object) string {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Sprintf("a %T", obj)
	}
	c, _, _ := unstructured.NestedString(u.Object, "spec", "c")
	return c
}

// TestReaderWhileTheSchemaChanges checks that a Reader never fails and never returns fewer objects while the kind is replaced. It
// returns writes that were acknowledged in the meantime. At the end all objects are as the last schema defines them.
func TestReaderWhileTheSchemaChanges(t *testing.T) {
	t.Parallel()
	const objects, replacements = 5, 40
	srv := servertest.New(t, shapes(nil, specFields{"a": nil}))
	h := host(t, srv)
	for i := range objects {
		untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, fmt.Sprint("x", i), `,"spec":{"a":"1"}`), 201)
	}
	r := srv.Readers().Reader(shapeKind("v1"))
	var over atomic.Bool
	var reading sync.WaitGroup
	var acked, gets, lists atomic.Int64
	x := &shapeIndex{}
	reads := []func() error{
		func() error {
			gets.Add(1)
			_, err := r.Get(t.Context(), "default", "x3", runtime.Freshness{})
			return err
		},
		func() error {
			lists.Add(1)
			least := acked.Load()
			l, err := r.List(t.Context(), runtime.Query{Namespace: "default"})
			if err == nil && (len(l.Items) < objects || l.Revision < least) {
				return fmt.Errorf("a list has %d objects at %d; a write at %d was acknowledged", len(l.Items), l.Revision, least)
			}
			return err
		},
		func() error {
			err := x.update(t.Context(), r)
			if err == nil && len(x.c) < objects {
				return fmt.Errorf("the index has %d objects", len(x.c))
			}
			return err
		},
		func() error {
			if err := r.Ready(t.Context()); err != nil {
				return err
			}
			l, err := r.List(t.Context(), runtime.Query{At: runtime.Exactly(r.Changed().Revision)})
			if err == nil && len(l.Items) < objects {
				return fmt.Errorf("a list at a revision has %d objects", len(l.Items))
			}
			return err
		},
	}
	if err := x.update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, read := range reads {
		reading.Go(func() {
			for !over.Load() && !t.Failed() {
				if err := read(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	reading.Go(func() {
		for i := 0; !over.Load() && !t.Failed(); i++ {
			code, body := untypedText(t, srv, "PATCH", shapePath(1)+"/x1", "application/merge-patch+json", fmt.Sprintf(`{"spec":{"a":"%d"}}`, i))
			var revision int64
			if _, rest, ok := strings.Cut(body, `"resourceVersion":"`); ok {
				_, _ = fmt.Sscanf(rest, "%d", &revision)
			}
			if code != 200 || revision == 0 {
				t.Errorf("PATCH: %d %s", code, body)
			}
			acked.Store(max(acked.Load(), revision))
		}
	})
	for i := 1; i <= replacements; i++ {
		if err := h.Replace([]schema.GroupResource{shapesResource}, shapes(nil, specFields{"a": nil, "c": fmt.Sprint(i)})); err != nil {
			t.Fatal(err)
		}
		for n, m := gets.Load(), lists.Load(); i%4 == 0 && (gets.Load() < n+3 || lists.Load() < m+3) && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
	}
	over.Store(true)
	reading.Wait()
	wait(t, "the last schema is shown", func() bool {
		l, err := r.List(t.Context(), runtime.Query{})
		return err == nil && len(l.Items) == objects && shapeDefault(l.Items[2]) == fmt.Sprint(replacements)
	})
	if err := x.update(t.Context(), r); err != nil || len(x.c) != objects {
		t.Fatalf("the index has %v, %v", x.c, err)
	}
	for name, c := range x.c {
		if name != "x1" && c != fmt.Sprint(replacements) {
			t.Errorf("%s has the default %q in the index, want that of the last schema", name, c)
		}
	}
}

// TestIndexAfterTheSchemaChanged checks that an index of the objects notices another schema, though no object is written: Changed
// differs, and the changes since the index was read have all objects.
func TestIndexAfterTheSchemaChanged(t *testing.T) {
	t.Parallel()
	for _, noCache := range []bool{false, true} {
		t.Run(fmt.Sprint("noCache=", noCache), func(t *testing.T) {
			t.Parallel()
			const objects = 3
			kind := func(c string) server.Group {
				return shapes(func(o *untypedOptions, _ int) { o.NoCache = noCache }, specFields{"a": nil, "c": c})
			}
			srv := servertest.New(t, shapes(func(o *untypedOptions, _ int) { o.NoCache = noCache }, specFields{"a": nil}))
			h := host(t, srv)
			for i := range objects {
				untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, fmt.Sprint("x", i), `,"spec":{"a":"1"}`), 201)
			}
			r := srv.Readers().Reader(shapeKind("v1"))
			x := &shapeIndex{}
			if err := x.update(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			for i, change := range []func(server.Group) error{
				func(g server.Group) error { return h.Replace([]schema.GroupResource{shapesResource}, g) },
				func(g server.Group) error { return h.Replace([]schema.GroupResource{shapesResource}, g) },
				func(g server.Group) error { return errors.Join(h.Withdraw(shapesResource), h.Serve(g)) },
				func(g server.Group) error { return h.Replace([]schema.GroupResource{shapesResource}, g) },
			} {
				want := fmt.Sprint(i)
				if err := change(kind(want)); err != nil {
					t.Fatal(err)
				}
				wait(t, "the schema is shown", func() bool {
					l, err := r.List(t.Context(), runtime.Query{})
					return err == nil && len(l.Items) == objects && shapeDefault(l.Items[0]) == want
				})
				if err := x.update(t.Context(), r); err != nil || len(x.c) != objects {
					t.Fatalf("the index has %v, %v", x.c, err)
				}
				for name, c := range x.c {
					if c != want {
						t.Errorf("after change %d the index has %s with the default %q, want %q", i, name, c, want)
					}
				}
				if l, err := r.List(t.Context(), runtime.Query{At: runtime.Exactly(r.Changed().Revision)}); err != nil || len(l.Items) != objects {
					t.Errorf("exactly at Changed after change %d: %d objects, %v", i, len(l.Items), err)
				}
			}
		})
	}
}

func wait(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not happen: %s", what)
		}
	}
}

// Dial is a kind with a Storage of its own, dials.
type Dial = runtime.Resource[struct {
	Hours int `json:"hours"`
}, struct{}]

type dials struct{}

func (dials) Get(call *registry.Call, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if call.Policy == nil {
		return nil, errors.New("nothing decides about the call")
	}
	return &Dial{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: call.Namespace}}, nil
}

func (dials) List(call *registry.Call, _ *metav1.ListOptions) (runtime.Object, error) {
	if call.Policy == nil {
		return nil, errors.New("nothing decides about the call")
	}
	l := &runtime.List[Dial]{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for _, ns := range []string{"default", "other"} {
		l.Items = append(l.Items, Dial{ObjectMeta: metav1.ObjectMeta{Name: "sun", Namespace: ns, Labels: map[string]string{"in": ns}}})
	}
	return l, nil
}

func dialGroup() server.Group {
	return server.Group{Name: "dials.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Dial", server.KindOptions[*Dial]{Storage: dials{}}),
	}}}}
}

// TestReaderOfOwnStorage checks that a kind with a Storage of its own is read by calls of that Storage, as far as it supports
// them.
func TestReaderOfOwnStorage(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, clockGroup(), dialGroup())
	if _, err := runtime.Read[*Clock](srv.Readers()).List(t.Context(), runtime.Query{}); err == nil || !strings.Contains(err.Error(), "no registry.Lister") {
		t.Errorf("List of a kind without a Lister: %v", err)
	}
	if _, err := runtime.Read[*Clock](srv.Readers()).Get(t.Context(), "default", "forgotten", runtime.Freshness{}); err == nil {
		t.Error("Get of no object is no error")
	}
	r := runtime.Read[*Dial](srv.Readers())
	l, err := r.List(t.Context(), runtime.Query{})
	if err != nil || len(l.Items) != 2 || l.Revision != 7 {
		t.Fatalf("List: %v, %v", l, err)
	}
	for _, q := range []runtime.Query{{Namespace: "other"}, {Labels: labels.SelectorFromSet(labels.Set{"in": "other"})}} {
		if l, err := r.List(t.Context(), q); err != nil || len(l.Items) != 1 || l.Items[0].Namespace != "other" {
			t.Errorf("List(%+v): %v, %v", q, l, err)
		}
	}
	one, err := r.Get(t.Context(), "default", "tick", runtime.Freshness{})
	if err != nil || one.Name != "tick" {
		t.Errorf("Get: %v, %v", one, err)
	}
	if _, err := r.Get(t.Context(), "default", "tick", runtime.Exactly(3)); err == nil || !strings.Contains(err.Error(), "at a revision") {
		t.Errorf("Get exactly: %v", err)
	}
	for _, since := range []int64{0, l.Revision} {
		if c, err := r.Changes(t.Context(), since, runtime.Freshness{}); err != nil || !c.Reset || len(c.All) != len(l.Items) {
			t.Errorf("Changes after %d: %+v, %v", since, c, err)
		}
	}
	if err := r.Ready(t.Context()); err != nil || r.Changed().Revision != 0 {
		t.Errorf("Ready: %v, Changed is %v", err, r.Changed())
	}
}

// TestReaderWithoutCache checks that a kind with NoCache is read from the storage.
func TestReaderWithoutCache(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, shapes(func(o *untypedOptions, _ int) { o.NoCache = true }, specFields{"a": nil}))
	r := srv.Readers().Reader(shapeKind("v1"))
	for i := range 3 {
		untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, fmt.Sprint("x", i), `,"spec":{"a":"1"}`), 201)
		c, err := r.Changes(t.Context(), r.Changed().Revision, runtime.Freshness{})
		if err != nil || !c.Reset || len(c.All) != i+1 {
			t.Errorf("Changes: %+v, %v, want a Reset with %d objects", c, err, i+1)
		}
	}
}

// BenchmarkReader measures the reads that a policy makes for every request.
func BenchmarkReader(b *testing.B) {
	srv := servertest.New(b, widgets())
	r := runtime.Read[*Widget](srv.Readers())
	resp, err := srv.Client().Post(srv.URL+widgetsPath, "application/json", strings.NewReader(widget(0)))
	if err != nil {
		b.Fatal(err)
	}
	_ = resp.Body.Close()
	l, err := r.List(b.Context(), runtime.Query{})
	if err != nil || len(l.Items) != 1 {
		b.Fatalf("%v, %v", l, err)
	}
	one := l.Items[0]
	for name, read := range map[string]func(ctx context.Context) error{
		"Changed": func(context.Context) error { r.Changed(); return nil },
		"Get": func(ctx context.Context) error {
			_, err := r.Get(ctx, one.Namespace, one.Name, runtime.Freshness{})
			return err
		},
		"Changes": func(ctx context.Context) error {
			_, err := r.Changes(ctx, l.Revision, runtime.Freshness{})
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
