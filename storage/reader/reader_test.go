package reader_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/reader"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// cached opens a cache in memory and fills it.
func cached(t testing.TB, co cacher.Options, ro reader.Options) *gadgets {
	t.Helper()
	g := open(t, backends["memory"](t), "gadgets", 0, co, ro)
	g.fill(t)
	return g
}

func (g *gadgets) changes(t testing.TB, since int64, at runtime.Freshness) runtime.Changes[runtime.Object] {
	t.Helper()
	c, err := g.Changes(t.Context(), since, at)
	if err != nil {
		t.Fatalf("Changes(%d, %v): %v", since, at, err)
	}
	return c
}

func (g *gadgets) list(t testing.TB, q runtime.Query) runtime.Listed[runtime.Object] {
	t.Helper()
	l, err := g.List(t.Context(), q)
	if err != nil {
		t.Fatalf("List(%+v): %v", q, err)
	}
	return l
}

func TestGet(t *testing.T) {
	t.Parallel()
	g := cached(t, cacher.Options{}, reader.Options{Status: func(err error, name string) error { return fmt.Errorf("of %q: %w", name, err) }})
	r1 := mustPut(t, g.cache, "ns/a", "red")
	one, err := g.Get(t.Context(), "ns", "a", runtime.Freshness{})
	if want := fmt.Sprintf("ns/a=red@%d", r1); err != nil || text(one) != want {
		t.Fatalf("%v, %v, want %s", one, err, want)
	}
	for _, at := range []runtime.Freshness{{}, runtime.Live(), runtime.AtLeast(r1), runtime.Exactly(r1)} {
		if again, err := g.Get(t.Context(), "ns", "a", at); err != nil || again != one {
			t.Errorf("%v: %v, %v: it was decoded again", at, again, err)
		}
	}
	r2 := mustPut(t, g.cache, "ns/a", "blue")
	if was, err := g.Get(t.Context(), "ns", "a", runtime.Exactly(r1)); err != nil || text(was) != text(one) {
		t.Errorf("exactly at %d: %v, %v", r1, was, err)
	}
	if now, err := g.Get(t.Context(), "ns", "a", runtime.Freshness{}); err != nil || revisionOf(now) != r2 {
		t.Errorf("%v, %v, want revision %d", now, err, r2)
	}
	for _, names := range [][2]string{{"ns", "b"}, {"", "a"}, {"", "ns/a"}, {"ns", ""}, {"x", "a"}} {
		_, err := g.Get(t.Context(), names[0], names[1], runtime.Freshness{})
		if !errors.Is(err, storage.ErrNotFound) || !strings.HasPrefix(err.Error(), fmt.Sprintf("of %q", names[1])) {
			t.Errorf("Get(%q): %v, want ErrNotFound, mapped", names, err)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	var indexes []string
	g := cached(t, cacher.Options{
		IndexFields: []string{"spec.color"}, IndexLabels: []string{"color"},
		Hooks: cacher.Hooks{Listed: func(l cacher.Listed) { indexes = append(indexes, l.Index) }},
	}, reader.Options{})
	for i, key := range []string{"a/x", "a/y", "b/x", "b/y"} {
		mustPut(t, g.cache, key, []string{"red", "blue"}[i%2])
	}
	for _, c := range []struct {
		query runtime.Query
		want  int
		index string
	}{
		{runtime.Query{}, 4, ""},
		{runtime.Query{Namespace: "a"}, 2, ""},
		{runtime.Query{Namespace: "none"}, 0, ""},
		{runtime.Query{Fields: fields.OneTermEqualSelector("spec.color", "red")}, 2, "f:spec.color"},
		{runtime.Query{Namespace: "b", Labels: labels.SelectorFromSet(labels.Set{"color": "blue"})}, 1, "l:color"},
	} {
		indexes = nil
		l := g.list(t, c.query)
		if len(l.Items) != c.want || len(indexes) != 1 || indexes[0] != c.index {
			t.Errorf("%+v: %s, by the indexes %q; want %d objects by %q", c.query, texts(l.Items), indexes, c.want, c.index)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	g := cached(t, cacher.Options{}, reader.Options{})
	r1 := mustPut(t, g.cache, "ns/a", "red")
	all := g.changes(t, 0, runtime.Freshness{})
	if !all.Reset || len(all.All) != 1 || all.Revision != r1 {
		t.Fatalf("at first %+v, want a Reset with one object at %d", all, r1)
	}
	mustPut(t, g.cache, "ns/a", "blue")
	mustPut(t, g.cache, "ns/b", "red")
	mustRemove(t, g.cache, "ns/b")
	r5 := mustPut(t, g.cache, "ns/a", "green")
	c := g.changes(t, r1, runtime.Freshness{})
	got := map[string]string{}
	for _, one := range c.All {
		got[one.Namespace+"/"+one.Name] = "deleted"
		if !one.Deleted {
			got[one.Namespace+"/"+one.Name] = text(one.Object)
		} else if one.Object != nil {
			t.Errorf("the deleted %s has an object", one.Name)
		}
	}
	if c.Reset || c.Revision != r5 || len(c.All) != 2 || got["ns/b"] != "deleted" || got["ns/a"] != fmt.Sprintf("ns/a=green@%d", r5) {
		t.Errorf("the changes after %d are %v at %d (reset %v)", r1, got, c.Revision, c.Reset)
	}
	if c := g.changes(t, r5, runtime.Freshness{}); c.Reset || c.All != nil || c.Revision != r5 {
		t.Errorf("with nothing new: %+v", c)
	}
	if c := g.changes(t, r1, runtime.Exactly(r1+1)); c.Reset || len(c.All) != 1 || c.Revision != r1+1 {
		t.Errorf("exactly at %d: %+v", r1+1, c)
	}
	if c := g.changes(t, r5, runtime.Exactly(r1)); !c.Reset || c.Revision != r1 || len(c.All) != 1 {
		t.Errorf("back to %d: %+v, want a Reset", r1, c)
	}
	if c := g.changes(t, r5+100, runtime.Freshness{}); !c.Reset {
		t.Errorf("after a revision that was not yet: %+v, want a Reset", c)
	}
}

// TestChangesBeforeTheWindow: changes that have left the log make a Reset.
func TestChangesBeforeTheWindow(t *testing.T) {
	t.Parallel()
	g := cached(t, cacher.Options{WindowBytes: 1 << 10}, reader.Options{})
	r1 := mustPut(t, g.cache, "ns/a", "red")
	g.changes(t, 0, runtime.Freshness{})
	for i := range 50 {
		mustPut(t, g.cache, "ns/a", fmt.Sprint("c", i))
	}
	g.list(t, runtime.Query{}) // all of them are in the cache
	if c := g.changes(t, r1, runtime.Freshness{}); !c.Reset || len(c.All) != 1 {
		t.Errorf("%+v, want a Reset", c)
	}
}

// TestChanged: only changes of the kind count, and an acknowledged change counts at once.
func TestChanged(t *testing.T) {
	t.Parallel()
	b := backends["memory"](t)
	g := open(t, b, "gadgets", 5*time.Millisecond, cacher.Options{}, reader.Options{})
	if n := g.Changed().Revision; n != 0 {
		t.Errorf("before it is filled: %d, want 0", n)
	}
	g.fill(t)
	for i := range 20 {
		r := mustPut(t, g.cache, "ns/a", fmt.Sprint("c", i))
		if n := g.Changed().Revision; n != r {
			t.Fatalf("after a write at %d: %d", r, n)
		}
	}
	last := g.Changed().Revision
	mustPut(t, g.cache, "ns/a", "c19") // no change
	if _, err := g.cache.Create(t.Context(), "ns/b", gadget("ns/b"), storage.WriteOptions{DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.cache.Update(t.Context(), "ns/a", storage.WriteOptions{DryRun: true}, func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
		return storage.Outcome{Delete: true}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(t.Context(), storage.Commit{Key: "/aside", Value: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if n := g.Changed().Revision; n != last {
		t.Errorf("without a change: %d, want %d", n, last)
	}
	other := mustPut(t, g.store, "ns/c", "red") // of another server
	eventually(t, "the change of another server is known", func() bool { return g.Changed().Revision == other })
	if l := g.list(t, runtime.Query{}); l.Revision < other || len(l.Items) != 2 {
		t.Errorf("a list after that: %s at %d", texts(l.Items), l.Revision)
	}
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not happen: %s", what)
		}
	}
}

// TestUnreadable: an unreadable object causes an error that names it, wherever it would be shown.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	b := backends["memory"](t)
	g := open(t, b, "gadgets", 0, cacher.Options{}, reader.Options{})
	mustPut(t, g.cache, "ns/a", "red")
	g.fill(t)
	before := g.changes(t, 0, runtime.Freshness{})
	done, err := b.Commit(t.Context(), storage.Commit{Key: "/registry/test.example.com/gadgets/ns/bad", Value: []byte("{")})
	if err != nil {
		t.Fatal(err)
	}
	at := runtime.AtLeast(done.Revision)
	wantUnreadable := func(how string, err error) {
		t.Helper()
		var unreadable *storage.UnreadableError
		if !errors.As(err, &unreadable) || unreadable.Key != "ns/bad" {
			t.Errorf("%s: %v, want an UnreadableError of ns/bad", how, err)
		}
	}
	_, err = g.Get(t.Context(), "ns", "bad", at)
	wantUnreadable("Get", err)
	_, err = g.List(t.Context(), runtime.Query{At: at})
	wantUnreadable("List", err)
	for _, since := range []int64{0, before.Revision} {
		_, err = g.Changes(t.Context(), since, at)
		wantUnreadable(fmt.Sprint("Changes after ", since), err)
	}
	if obj, err := g.Get(t.Context(), "ns", "a", at); err != nil {
		t.Errorf("another object: %v, %v", obj, err)
	}
	if _, err := g.cache.DeleteUnreadable(t.Context(), "ns/bad", storage.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if c := g.changes(t, before.Revision, runtime.Freshness{}); c.Reset || len(c.All) != 1 || !c.All[0].Deleted {
		t.Errorf("after its deletion: %+v", c)
	}
}

// unfollowed is a storage whose changes cannot be followed, so that a cache over it is never filled.
type unfollowed struct{ *storage.Store }

func (unfollowed) Follow(context.Context, int64) (storage.Following, error) {
	return nil, storage.ErrUnavailable
}

// TestChangesWithoutUnreadable: Changes returns everything except unreadable objects, from memory and from the storage below.
func TestChangesWithoutUnreadable(t *testing.T) {
	t.Parallel()
	b := backends["memory"](t)
	g := open(t, b, "gadgets", 0, cacher.Options{}, reader.Options{})
	g.fill(t)
	behind, err := cacher.New(unfollowed{g.store}, cacher.Options{Namespaced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(behind.Close)
	plant := func(key, value string) {
		t.Helper()
		key = "/registry/test.example.com/gadgets/" + key
		if _, err := b.Commit(t.Context(), storage.Commit{Key: key, Expect: storage.AnyRevision, Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	mustPut(t, g.cache, "ns/a", "red")
	mustPut(t, g.cache, "ns/b", "red")
	mustPut(t, g.cache, "ns/z", "red")
	before := map[string]int64{}
	readers := map[string]storage.Interface{"cache": g.cache, "cache that is not filled": behind, "storage": g.store}
	for name, store := range readers {
		r, err := reader.New(store, reader.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.Changes(t.Context(), 0, runtime.Freshness{})
		if err != nil || len(c.All) != 3 {
			t.Fatalf("%s: %+v, %v", name, c, err)
		}
		before[name] = c.Revision
	}
	plant("ns/a", "{")
	plant("ns/b", `{"apiVersion":"test.example.com/v1","kind":"Gadget","metadata":{"namespace":"ns","name":"b"},"spec":{"size":"many"}}`)
	last := mustPut(t, g.cache, "ns/z", "blue")
	for name, store := range readers {
		for _, at := range []runtime.Freshness{{}, runtime.Live(), runtime.AtLeast(last), runtime.Exactly(last)} {
			for _, since := range []int64{0, before[name]} {
				r, err := reader.New(store, reader.Options{})
				if err != nil {
					t.Fatal(err)
				}
				c, err := r.Changes(t.Context(), since, at)
				var unreadable *storage.UnreadableError
				if !errors.Is(err, runtime.ErrUnreadable) || !errors.As(err, &unreadable) {
					t.Fatalf("%s, %s: error %v, want ErrUnreadable", name, at, err)
				}
				named := map[string]bool{}
				for one := range unreadable.All() {
					named[one.Key] = true
				}
				if fmt.Sprint(named) != "map[ns/a:true ns/b:true]" {
					t.Errorf("%s, %s: error %v, want one of two objects", name, at, err)
				}
				got := map[string]bool{}
				for _, one := range c.All {
					got[one.Name] = one.Deleted
				}
				if fmt.Sprint(got) != "map[a:true b:true z:false]" || c.Revision < last || c.Reset != (since == 0 || name != "cache") {
					t.Errorf("%s, %s: %+v", name, at, c)
				}
				if c, err = r.Changes(t.Context(), c.Revision, runtime.Exactly(c.Revision)); name == "cache" && (err != nil || len(c.All) != 0) {
					t.Errorf("%s, %s: after the changes: %+v, %v", name, at, c, err)
				}
			}
		}
	}
}

// TestReady: Ready makes a cache begin to fill.
func TestReady(t *testing.T) {
	t.Parallel()
	g := open(t, backends["memory"](t), "gadgets", 0, cacher.Options{}, reader.Options{})
	if err := g.Ready(t.Context()); err != nil && !errors.Is(err, runtime.ErrNotReady) {
		t.Errorf("at first: %v, want ErrNotReady or nil", err)
	}
	eventually(t, "it is ready", func() bool { return g.Ready(t.Context()) == nil })
	g.cache.Close()
	if err := g.Ready(t.Context()); !errors.Is(err, runtime.ErrNotReady) {
		t.Errorf("after Close: %v, want ErrNotReady", err)
	}
	if _, err := g.Get(t.Context(), "ns", "a", runtime.Freshness{}); !errors.Is(err, runtime.ErrNotReady) {
		t.Errorf("Get after Close: %v, want ErrNotReady", err)
	}
	if n := g.Changed().Revision; n != 0 {
		t.Errorf("Changed after Close: %d, want 0", n)
	}
}

// TestWithoutCache: every read reads the storage.
func TestWithoutCache(t *testing.T) {
	t.Parallel()
	store := storeOf(t, backends["memory"](t), "gadgets")
	r, err := reader.New(store, reader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := &gadgets{Reader: r, store: store}
	r1 := mustPut(t, store, "ns/a", "red")
	one, err := g.Get(t.Context(), "ns", "a", runtime.Freshness{})
	if err != nil || revisionOf(one) != r1 || g.Changed().Revision != r1 || g.Ready(t.Context()) != nil {
		t.Errorf("%v, %v; Changed is %d, Ready %v", one, err, g.Changed().Revision, g.Ready(t.Context()))
	}
	r2 := mustPut(t, store, "ns/b", "red")
	for _, since := range []int64{0, r1, r2} {
		if c := g.changes(t, since, runtime.Freshness{}); !c.Reset || len(c.All) != 2 || c.Revision != r2 {
			t.Errorf("Changes after %d: %+v, want a Reset", since, c)
		}
	}
	if l := g.list(t, runtime.Query{At: runtime.Exactly(r1)}); texts(l.Items) != text(one) {
		t.Errorf("exactly at %d: %s", r1, texts(l.Items))
	}
}

// TestBound: objects beyond the bound are decoded again, and objects that are read more often stay.
func TestBound(t *testing.T) {
	t.Parallel()
	g := cached(t, cacher.Options{}, reader.Options{KeepBytes: 16 << 10})
	for i := range 200 {
		mustPut(t, g.cache, fmt.Sprintf("ns/%03d", i), "red")
	}
	first, second := g.list(t, runtime.Query{}), g.list(t, runtime.Query{})
	same := 0
	for i, obj := range first.Items {
		if second.Items[i] == obj {
			same++
		}
	}
	if texts(first.Items) != texts(second.Items) || same == len(first.Items) {
		t.Errorf("%d of %d objects are the same, want fewer", same, len(first.Items))
	}
	none := cached(t, cacher.Options{}, reader.Options{KeepBytes: -1})
	mustPut(t, none.cache, "ns/a", "red")
	a, b := none.list(t, runtime.Query{}), none.list(t, runtime.Query{})
	if a.Items[0] == b.Items[0] {
		t.Error("an object is kept, and none may be")
	}
}

// swapped is a backend that can be replaced by another one: the store was set back.
type swapped struct {
	current atomic.Pointer[memory.Backend]
}

func (s *swapped) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	return s.current.Load().Get(ctx, key, at)
}

func (s *swapped) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	return s.current.Load().Range(ctx, r)
}

func (s *swapped) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	return s.current.Load().Commit(ctx, c)
}

func (s *swapped) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	return s.current.Load().Watch(ctx, w)
}

func (s *swapped) Close() error { return nil }

// TestSetBack: a reader of a store that was set back shows the state it was set back to, and no changes between the two
// states.
func TestSetBack(t *testing.T) {
	t.Parallel()
	s := &swapped{}
	for range 2 {
		b := memory.New(memory.Options{})
		t.Cleanup(func() { b.Close() })
		if s.current.Load() == nil {
			s.current.Store(b)
			continue
		}
		g := open(t, s, "gadgets", 0, cacher.Options{ReadWait: 50 * time.Millisecond}, reader.Options{})
		mustPut(t, g.cache, "ns/a", "red")
		mustPut(t, g.cache, "ns/b", "red")
		was := g.changes(t, 0, runtime.Freshness{})
		s.current.Store(b)
		mustPut(t, g.cache, "ns/a", "new") // at the revision that red had
		eventually(t, "the state of now is shown", func() bool {
			if _, err := g.List(t.Context(), runtime.Query{At: runtime.Live()}); err != nil {
				return false
			}
			l, err := g.List(t.Context(), runtime.Query{})
			return err == nil && len(l.Items) == 1 && strings.HasPrefix(texts(l.Items), "ns/a=new@")
		})
		for range 5 { // these are after the earlier revision
			mustPut(t, g.cache, "ns/c", fmt.Sprint("c", g.Changed().Revision))
		}
		c := g.changes(t, was.Revision, runtime.Freshness{})
		if !c.Reset || len(c.All) != 2 || c.Revision <= was.Revision {
			t.Errorf("the changes since the store was set back: %+v, want a Reset", c)
		}
		mustPut(t, g.cache, "ns/d", "red")
		if c = g.changes(t, c.Revision, runtime.Freshness{}); c.Reset || len(c.All) != 1 {
			t.Errorf("the changes after that: %+v, want one", c)
		}
	}
}

// TestBehind: the reader waits at most the ReadWait of a cache that does not receive a write.
func TestBehind(t *testing.T) {
	t.Parallel()
	g := open(t, backends["memory"](t), "gadgets", time.Hour, cacher.Options{ReadWait: time.Millisecond}, reader.Options{})
	r := mustPut(t, g.cache, "ns/a", "red") // it is not filled
	if l := g.list(t, runtime.Query{}); len(l.Items) != 1 || l.Revision < r {
		t.Errorf("%s at %d, want the write at %d", texts(l.Items), l.Revision, r)
	}
	if c := g.changes(t, 0, runtime.Freshness{}); !c.Reset || len(c.All) != 1 {
		t.Errorf("%+v, want a Reset", c)
	}
}
