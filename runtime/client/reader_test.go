package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Boat is the Go type of the server's kind.
type Boat = runtime.Resource[boatSpec, struct{}]

type boatSpec struct {
	Color  string `json:"color,omitempty"`
	Length int64  `json:"length,omitempty"`
	Crew   int64  `json:"crew,omitempty"`
}

var cached = runtime.Freshness{}

// readers returns Readers with short pauses after failures. They are closed at the end of the test.
func (w *wire) readers(o client.ReadersOptions) *client.Readers {
	o.BackoffMin, o.BackoffMax = time.Millisecond, 10*time.Millisecond
	if o.Refresh == 0 {
		o.Refresh = time.Millisecond
	}
	if o.Wait == 0 {
		o.Wait = time.Minute
	}
	r := client.NewReaders(w.dial(client.Options{}), o)
	w.t.Cleanup(r.Close)
	return r
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := runtime.Register[*Boat](s, boatKind, runtime.KindOptions[*Boat]{Default: func(b *Boat) { b.Spec.Crew = max(b.Spec.Crew, 1) }}); err != nil {
		t.Fatal(err)
	}
	return s
}

// names returns the objects of a list as namespace/name=color.
func names(objs []runtime.Object) []string {
	out := []string{}
	for _, obj := range objs {
		u := obj.(*unstructured.Unstructured)
		color, _, _ := unstructured.NestedString(u.Object, "spec", "color")
		out = append(out, u.GetNamespace()+"/"+u.GetName()+"="+color)
	}
	return out
}

func list(t testing.TB, r runtime.Reader[runtime.Object], q runtime.Query) (int64, []string) {
	t.Helper()
	l, err := r.List(t.Context(), q)
	if err != nil {
		t.Fatalf("list at %s: %v", q.At, err)
	}
	return l.Revision, names(l.Items)
}

// ready waits until a reader is ready.
func ready(t testing.TB, r runtime.Reader[runtime.Object]) {
	t.Helper()
	var err error
	for range 10_000 {
		if err = r.Ready(t.Context()); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("not ready: %v", err)
}

func want[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

// both runs a test twice: with objects that the watch sends, and with lists in pages.
func both(t *testing.T, f func(t *testing.T, o client.ReadersOptions)) {
	t.Run("watch", func(t *testing.T) { f(t, client.ReadersOptions{}) })
	t.Run("pages", func(t *testing.T) { f(t, client.ReadersOptions{Pages: true, PageSize: 2}) })
}

func TestReadsAndFollows(t *testing.T) {
	both(t, func(t *testing.T, o client.ReadersOptions) {
		w := newWire(t)
		for _, name := range []string{"c", "a", "b", "d", "e"} {
			w.put("red-sea", name, "red")
		}
		w.put("red", "z", "blue")
		r := w.readers(o).Reader(boatKind)
		rev, got := list(t, r, runtime.Query{})
		want(t, "list", got, []string{"red/z=blue", "red-sea/a=red", "red-sea/b=red", "red-sea/c=red", "red-sea/d=red", "red-sea/e=red"})
		want(t, "revision", rev, 106)
		want(t, "Changed", r.Changed().Revision, 106)
		if err := r.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		_, got = list(t, r, runtime.Query{Namespace: "red"})
		want(t, "namespace", got, []string{"red/z=blue"})
		_, got = list(t, r, runtime.Query{Labels: labels.SelectorFromSet(labels.Set{"color": "blue"})})
		want(t, "labels", got, []string{"red/z=blue"})
		_, got = list(t, r, runtime.Query{Namespace: "red-sea", Fields: fields.OneTermEqualSelector("metadata.name", "b")})
		want(t, "name", got, []string{"red-sea/b=red"})
		_, got = list(t, r, runtime.Query{Fields: fields.AndSelectors(fields.OneTermNotEqualSelector("metadata.name", "b"), fields.OneTermEqualSelector("metadata.namespace", "red-sea"))})
		want(t, "not that name", got, []string{"red-sea/a=red", "red-sea/c=red", "red-sea/d=red", "red-sea/e=red"})
		_, got = list(t, r, runtime.Query{Fields: fields.OneTermEqualSelector("spec.color", "blue")})
		want(t, "a field of the server", got, []string{"red/z=blue"})

		at := w.delete("red-sea", "b")
		at = max(at, w.put("red-sea", "a", "green"))
		obj, err := r.Get(t.Context(), "red-sea", "a", runtime.AtLeast(at))
		if err != nil {
			t.Fatal(err)
		}
		want(t, "changed", names([]runtime.Object{obj}), []string{"red-sea/a=green"})
		if _, err = r.Get(t.Context(), "red-sea", "b", cached); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `boats.example.com "b" not found`) {
			t.Errorf("deleted: %v", err)
		}
		again, err := r.Get(t.Context(), "red-sea", "a", cached)
		if err != nil || again != obj {
			t.Errorf("an object is decoded twice, or %v", err)
		}
	})
}

// If a server does not send the objects at the beginning of a watch, the Reader lists them.
func TestFallsBackToPages(t *testing.T) {
	w := newWire(t)
	w.initial = false
	for i := range 5 {
		w.put("n", fmt.Sprint("b", i), "red")
	}
	r := w.readers(client.ReadersOptions{PageSize: 2}).Reader(boatKind)
	_, got := list(t, r, runtime.Query{})
	want(t, "objects", len(got), 5)
	w.do(func() { want(t, "at least three pages", w.pages >= 3, true) })
}

func TestTyped(t *testing.T) {
	w := newWire(t)
	w.put("n", "a", "red")
	readers := w.readers(client.ReadersOptions{Scheme: scheme(t)})
	boats := runtime.Read[*Boat](readers)
	b, err := boats.Get(t.Context(), "n", "a", cached)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "object", b.Spec, boatSpec{"red", 3, 1})
	want(t, "kind", b.GroupVersionKind(), boatKind)
	for _, at := range []runtime.Freshness{runtime.Live(), runtime.AtLeast(1)} {
		l, err := boats.List(t.Context(), runtime.Query{At: at})
		if err != nil || len(l.Items) != 1 || l.Items[0].Kind != "Boat" || l.Items[0].Spec.Crew != 1 {
			t.Errorf("%s: %v %v", at, l, err)
		}
	}
	if _, err := runtime.Read[*runtime.Resource[string, string]](readers).Get(t.Context(), "", "a", cached); !errors.Is(err, runtime.ErrNotReady) {
		t.Errorf("a type of no kind: %v", err)
	}
}

// Changes arrive in order, and Changes can be called repeatedly. Only the watch is used, because a list does not show an object
// that was created and deleted before it.
func TestChanges(t *testing.T) {
	w := newWire(t)
	first := w.put("n", "a", "red")
	r := w.readers(client.ReadersOptions{Changes: 6, Refresh: time.Hour}).Reader(boatKind)
	c, err := r.Changes(t.Context(), 0, cached)
	if err != nil || !c.Reset || len(c.All) != 1 || c.Revision != first {
		t.Fatalf("first: %+v %v", c, err)
	}
	since := c.Revision
	w.put("n", "b", "red")
	w.put("n", "b", "green")
	w.put("n", "c", "red")
	w.delete("n", "c")
	last := w.delete("n", "a")
	c, err = r.Changes(t.Context(), since, runtime.Live())
	if err != nil || c.Reset || c.Revision != last {
		t.Fatalf("second: %+v %v", c, err)
	}
	got := []string{}
	for _, one := range c.All {
		got = append(got, fmt.Sprintf("%s %t %t", one.Name, one.Deleted, one.Object == nil))
	}
	want(t, "changes", got, []string{"a true true", "b false false", "c true true"})
	c, err = r.Changes(t.Context(), last, cached)
	if err != nil || c.Reset || len(c.All) != 0 || c.Revision != last {
		t.Errorf("nothing more: %+v %v", c, err)
	}
	for i := range 3 {
		last = w.put("n", "d", fmt.Sprint(i))
	}
	if c, err = r.Changes(t.Context(), since, runtime.AtLeast(last)); err != nil || !c.Reset || len(c.All) != 2 {
		t.Errorf("too long ago: %+v %v", c, err)
	}
	if c, err = r.Changes(t.Context(), last-1, cached); err != nil || c.Reset || len(c.All) != 1 {
		t.Errorf("the last: %+v %v", c, err)
	}
}

func TestExactly(t *testing.T) {
	w := newWire(t)
	w.put("n", "a", "red")
	begin := w.put("n", "b", "red")
	r := w.readers(client.ReadersOptions{Changes: 4, Refresh: time.Hour}).Reader(boatKind)
	list(t, r, runtime.Query{})
	states := map[int64][]string{begin: {"n/a=red", "n/b=red"}}
	for _, step := range []struct {
		do    func() int64
		state []string
	}{
		{func() int64 { return w.put("n", "a", "green") }, []string{"n/a=green", "n/b=red"}},
		{func() int64 { return w.delete("n", "b") }, []string{"n/a=green"}},
		{func() int64 { return w.bookmark() }, []string{"n/a=green"}},
		{func() int64 { return w.put("n", "c", "red") }, []string{"n/a=green", "n/c=red"}},
		{func() int64 { return w.put("n", "b", "new") }, []string{"n/a=green", "n/b=new", "n/c=red"}},
	} {
		at := step.do()
		states[at] = step.state
		list(t, r, runtime.Query{At: runtime.AtLeast(at)})
	}
	for at, state := range states {
		rev, got := list(t, r, runtime.Query{At: runtime.Exactly(at)})
		want(t, fmt.Sprint("state at ", at), got, state)
		want(t, "revision", rev, at)
		_, err := r.Get(t.Context(), "n", "b", runtime.Exactly(at))
		want(t, fmt.Sprint("b is there at ", at), err == nil, slices.ContainsFunc(state, func(s string) bool { return strings.HasPrefix(s, "n/b") }))
	}
	last := w.put("n", "d", "red")
	if _, got := list(t, r, runtime.Query{At: runtime.Exactly(last)}); len(got) != 4 {
		t.Errorf("exactly waits for what comes: %s", got)
	}
	_, err := r.List(t.Context(), runtime.Query{At: runtime.Exactly(begin)})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("a state that is not retained: %v", err)
	}
	_, err = r.List(t.Context(), runtime.Query{At: runtime.Exactly(last), Fields: fields.OneTermEqualSelector("spec.color", "red")})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("a field of the server: %v", err)
	}
}

// A read waits for a write for which the watch sends no event, and finds it by a list.
func TestAtLeastOnASilentWatch(t *testing.T) {
	both(t, func(t *testing.T, o client.ReadersOptions) {
		w := newWire(t)
		w.put("n", "a", "red")
		r := w.readers(o).Reader(boatKind)
		list(t, r, runtime.Query{})
		w.do(func() { w.silent = true })
		at := w.put("n", "b", "red")
		w.delete("n", "a")
		if _, got := list(t, r, runtime.Query{At: runtime.AtLeast(at)}); !slices.Contains(got, "n/b=red") {
			t.Errorf("the write is not there: %s", got)
		}
		// The late events belong to a state before the list, and are not applied again.
		w.do(func() { w.silent = false })
		at = w.put("n", "c", "red")
		_, got := list(t, r, runtime.Query{At: runtime.AtLeast(at)})
		want(t, "state", got, []string{"n/b=red", "n/c=red"})
	})
}

func TestAtLeastOfTheFuture(t *testing.T) {
	w := newWire(t)
	at := w.put("n", "a", "red")
	r := w.readers(client.ReadersOptions{Wait: 50 * time.Millisecond}).Reader(boatKind)
	_, err := r.Get(t.Context(), "n", "a", runtime.AtLeast(at+1000))
	if !apierrors.IsTimeout(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		t.Errorf("a revision that does not come: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = r.Get(ctx, "n", "a", runtime.AtLeast(at+1000)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// After a 410 the objects are listed again: a deletion for which no event was sent is a change.
func TestExpiredKeepsDeletes(t *testing.T) {
	both(t, func(t *testing.T, o client.ReadersOptions) {
		w := newWire(t)
		w.put("n", "a", "red")
		w.put("n", "b", "red")
		o.Stale = -1
		r := w.readers(o).Reader(boatKind)
		since, _ := list(t, r, runtime.Query{})
		kept, err := r.Get(t.Context(), "n", "b", cached)
		if err != nil {
			t.Fatal(err)
		}
		w.leave(true)
		w.delete("n", "a")
		at := w.put("n", "c", "red")
		w.expire()
		w.leave(false)
		c, err := r.Changes(t.Context(), since, runtime.AtLeast(at))
		if err != nil || c.Reset || c.Revision < at {
			t.Fatalf("changes: %+v %v", c, err)
		}
		got := []string{}
		for _, one := range c.All {
			got = append(got, fmt.Sprint(one.Name, one.Deleted))
		}
		want(t, "changes", got, []string{"atrue", "cfalse"})
		if again, err := r.Get(t.Context(), "n", "b", cached); err != nil || again != kept {
			t.Errorf("an object that did not change is another one after a list, or %v", err)
		}
		if _, err = r.List(t.Context(), runtime.Query{At: runtime.Exactly(since + 1)}); !apierrors.IsResourceExpired(err) {
			t.Errorf("a state that no event told: %v", err)
		}
		ready(t, r)
	})
}

// After a watch was cut in the middle of an event, the next watch sends that event again.
func TestCutInAnEvent(t *testing.T) {
	w := newWire(t)
	w.put("n", "a", "red")
	r := w.readers(client.ReadersOptions{}).Reader(boatKind)
	since, _ := list(t, r, runtime.Query{})
	names := []string{}
	for i := range 5 {
		w.cut(20 + i)
		name := fmt.Sprint("b", i)
		at := w.put("n", name, "red")
		names = append(names, name)
		if _, err := r.Get(t.Context(), "n", name, runtime.AtLeast(at)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := r.Changes(t.Context(), since, cached)
	if err != nil || c.Reset {
		t.Fatalf("%+v %v", c, err)
	}
	got := []string{}
	for _, one := range c.All {
		got = append(got, one.Name)
	}
	want(t, "changes", got, names)
}

func TestOutage(t *testing.T) {
	w := newWire(t)
	w.put("n", "a", "red")
	retried := make(chan error, 1)
	hooks := client.ReaderHooks{Retry: func(_ schema.GroupVersionKind, err error, _ time.Duration) {
		select {
		case retried <- err:
		default:
		}
	}}
	r := w.readers(client.ReadersOptions{Stale: -1, Hooks: hooks}).Reader(boatKind)
	list(t, r, runtime.Query{})
	w.leave(true)
	<-retried
	<-retried // an attempt that began while the server could not be reached
	if err := <-retried; err == nil || errors.Is(err, runtime.ErrNotReady) {
		t.Errorf("what failed: %v", err)
	}
	_, got := list(t, r, runtime.Query{})
	want(t, "what was known", got, []string{"n/a=red"})
	outage := &client.OutageError{}
	if err := r.Ready(t.Context()); !errors.As(err, &outage) || outage.Since.IsZero() || outage.Err == nil || errors.Is(err, runtime.ErrNotReady) {
		t.Errorf("Ready: %v", err)
	}
	if _, err := r.Get(t.Context(), "n", "a", runtime.Live()); !errors.Is(err, runtime.ErrNotReady) {
		t.Errorf("live: %v", err)
	}
	at := w.put("n", "b", "red")
	w.leave(false)
	_, got = list(t, r, runtime.Query{At: runtime.AtLeast(at)})
	want(t, "after it", got, []string{"n/a=red", "n/b=red"})
	ready(t, r) // needs time: the objects may arrive before the watch is known to work
}

// If a server has another history, with lower revisions, the Reader follows it.
func TestAnotherHistory(t *testing.T) {
	both(t, func(t *testing.T, o client.ReadersOptions) {
		w := newWire(t)
		w.put("n", "old", "red")
		loaded := make(chan int64, 100)
		o.Hooks.Loaded = func(_ schema.GroupVersionKind, revision int64, _ int) { loaded <- revision }
		r := w.readers(o).Reader(boatKind)
		since, _ := list(t, r, runtime.Query{})
		w.leave(true)
		w.do(func() { w.revision = 10; clear(w.objects); w.events = nil })
		at := w.put("n", "new", "red")
		w.leave(false)
		for <-loaded != at {
		}
		rev, got := list(t, r, runtime.Query{})
		want(t, "state", got, []string{"n/new=red"})
		want(t, "revision", rev, at)
		c, err := r.Changes(t.Context(), since, cached)
		if err != nil || !c.Reset || len(c.All) != 1 {
			t.Errorf("changes since a revision of the other history: %+v %v", c, err)
		}
	})
}

func TestNotServed(t *testing.T) {
	w := newWire(t)
	w.put("n", "a", "red")
	readers := w.readers(client.ReadersOptions{})
	other := readers.Reader(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"})
	if _, err := other.Get(t.Context(), "n", "a", cached); !errors.Is(err, runtime.ErrNotReady) || !strings.Contains(err.Error(), "Ship") {
		t.Errorf("a kind that is not served: %v", err)
	}
	if _, err := other.List(t.Context(), runtime.Query{At: runtime.Live()}); !errors.Is(err, runtime.ErrNotReady) {
		t.Errorf("live: %v", err)
	}
	if err := other.Ready(t.Context()); !errors.Is(err, runtime.ErrNotReady) {
		t.Errorf("Ready: %v", err)
	}
	r := readers.Reader(boatKind)
	list(t, r, runtime.Query{})
	w.do(func() { w.gone = true; w.epoch++; w.cutAfter = -1 })
	for {
		if _, err := r.List(t.Context(), runtime.Query{}); err != nil {
			if !errors.Is(err, runtime.ErrNotReady) {
				t.Errorf("a kind that is not served any more: %v", err)
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
	w.do(func() { w.gone = false })
	ready(t, r)
	_, got := list(t, r, runtime.Query{})
	want(t, "served again", got, []string{"n/a=red"})
}

// If the server refuses the requests of the Reader, the error wraps ErrNotReady. It is not a StatusError, which would look like a
// refusal of the user.
func TestForbidden(t *testing.T) {
	both(t, func(t *testing.T, o client.ReadersOptions) {
		w := newWire(t)
		w.put("n", "a", "red")
		w.do(func() {
			w.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "boats"}, "", errors.New("not you"))
		})
		r := w.readers(o).Reader(boatKind)
		for _, at := range []runtime.Freshness{cached, runtime.Live()} {
			_, err := r.List(t.Context(), runtime.Query{At: at})
			_, err2 := r.Get(t.Context(), "n", "a", at)
			for _, err := range []error{err, err2} {
				if !errors.Is(err, runtime.ErrNotReady) || apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "not you") {
					t.Errorf("%s: %v", at, err)
				}
			}
		}
		w.do(func() { w.refuse = nil })
		ready(t, r)
		w.do(func() { w.gone = true })
		if _, err := r.Get(t.Context(), "n", "a", runtime.Live()); !errors.Is(err, runtime.ErrNotReady) || apierrors.IsNotFound(err) {
			t.Errorf("a resource that is gone: %v", err)
		}
		w.do(func() { w.gone = false })
		if _, err := r.Get(t.Context(), "n", "b", runtime.Live()); !apierrors.IsNotFound(err) {
			t.Errorf("an object that is not there: %v", err)
		}
	})
}

func TestBounds(t *testing.T) {
	both(t, func(t *testing.T, o client.ReadersOptions) {
		w := newWire(t)
		for i := range 4 {
			w.put("n", fmt.Sprint("b", i), "red")
		}
		o.MaxObjects = 4
		readers := w.readers(o)
		r := readers.Reader(boatKind)
		list(t, r, runtime.Query{})
		w.put("n", "b4", "red")
		for {
			_, err := r.List(t.Context(), runtime.Query{})
			if err == nil {
				time.Sleep(time.Millisecond)
				continue
			}
			if !errors.Is(err, runtime.ErrNotReady) || !strings.Contains(err.Error(), "MaxObjects") {
				t.Errorf("too many objects: %v", err)
			}
			break
		}
		if _, err := r.List(t.Context(), runtime.Query{At: runtime.Live()}); !errors.Is(err, runtime.ErrNotReady) {
			t.Errorf("live: %v", err)
		}
		w.delete("n", "b4")
		ready(t, r)
		o.MaxObjects, o.MaxBytes = 0, 100
		if _, err := w.readers(o).Reader(boatKind).List(t.Context(), runtime.Query{}); !errors.Is(err, runtime.ErrNotReady) || !strings.Contains(err.Error(), "MaxBytes") {
			t.Errorf("too many bytes: %v", err)
		}
		o.MaxKinds, o.MaxBytes = 1, 0
		readers = w.readers(o)
		list(t, readers.Reader(boatKind), runtime.Query{})
		other := readers.Reader(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
		if _, err := other.List(t.Context(), runtime.Query{}); !errors.Is(err, runtime.ErrNotReady) || !strings.Contains(err.Error(), "MaxKinds") {
			t.Errorf("too many kinds: %v", err)
		}
	})
}

// If a page is longer than an answer may be, it is requested in smaller pages.
func TestHugePages(t *testing.T) {
	w := newWire(t)
	for i := range 8 {
		w.put("n", fmt.Sprint("b", i), strings.Repeat("x", 1000))
	}
	r := client.NewReaders(w.dial(client.Options{MaxAnswer: 6000}), client.ReadersOptions{Pages: true})
	defer r.Close()
	_, got := list(t, r.Reader(boatKind), runtime.Query{})
	want(t, "objects", len(got), 8)
	r = client.NewReaders(w.dial(client.Options{MaxAnswer: 1000}), client.ReadersOptions{Pages: true})
	defer r.Close()
	if _, err := r.Reader(boatKind).List(t.Context(), runtime.Query{}); !errors.Is(err, runtime.ErrNotReady) || !errors.Is(err, client.ErrTooLong) {
		t.Errorf("an object that is too long: %v", err)
	}
}

func TestClosed(t *testing.T) {
	w := newWire(t)
	w.put("n", "a", "red")
	leaks := goleak.IgnoreCurrent()
	c, err := client.New(client.Config{Server: w.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	readers := client.NewReaders(c, client.ReadersOptions{})
	r := readers.Reader(boatKind)
	list(t, r, runtime.Query{})
	waits := make(chan error)
	go func() {
		_, err := r.Get(context.Background(), "n", "a", runtime.AtLeast(1<<40))
		waits <- err
	}()
	readers.Close()
	readers.Close()
	if err := <-waits; !errors.Is(err, runtime.ErrNotReady) {
		t.Errorf("a read that Close ends: %v", err)
	}
	for _, r := range []runtime.Reader[runtime.Object]{r, readers.Reader(boatKind)} {
		if _, err := r.List(t.Context(), runtime.Query{}); !errors.Is(err, runtime.ErrNotReady) || !strings.Contains(err.Error(), "closed") {
			t.Errorf("after Close: %v", err)
		}
	}
	c.Close()
	w.cut(-1)
	w.close()
	if err := goleak.Find(leaks); err != nil {
		t.Error(err)
	}
}
