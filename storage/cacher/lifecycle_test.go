package cacher_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
)

// wantReady checks the result of Ready: nil, or an error with all of these words.
func (r *rig) wantReady(words ...string) {
	r.t.Helper()
	err := r.Ready(r.ctx)
	if len(words) == 0 {
		if err != nil {
			r.t.Errorf("Ready: %v", err)
		}
		return
	}
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			r.t.Errorf("Ready: %v, want something about %q", err, words)
			return
		}
	}
}

// A read that is not older than a revision shows what the cache has received since, as a read of any state does.
func TestNotOlderThanIsTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, cacher.Options{})
		first := r.put("a/x", "red")
		r.fill()
		w := r.watch(storage.WatchOptions{})
		at := storage.Read{Match: storage.NotOlderThan, Revision: first}
		for _, color := range []string{"", "blue", "green"} {
			last := first
			if color != "" {
				last = r.put("a/x", color)
				w.want(fmt.Sprintf("MODIFIED a/x@%d", last)) // the cache has it
			}
			if got := shown(r.list(storage.ListOptions{At: at})); got != fmt.Sprintf("a/x@%d", last) {
				t.Errorf("List: %q, want %d", got, last)
			}
			if got, err := r.Get(r.ctx, "a/x", at); err != nil || got.Revision != last {
				t.Errorf("Get: %+v, %v, want %d", got, err, last)
			}
		}
		gone := r.drop("a/x")
		w.want(fmt.Sprintf("DELETED a/x@%d", gone))
		if got, err := r.Get(r.ctx, "a/x", at); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Get: %+v, %v", got, err)
		}
	})
}

// If the storage below is silent, the cache stays as it is, and Ready reports since when. Reads that are possible succeed.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, cacher.Options{ReadWait: time.Second})
		made := r.put("a/x", "red")
		r.fill()
		w := r.watch(storage.WatchOptions{})
		r.wantReady()
		time.Sleep(time.Hour) // a store without changes is not silent: it answers requests for progress
		r.wantReady()

		r.source.hold()
		unseen := r.put("a/x", "blue")
		time.Sleep(31 * time.Second)
		r.wantReady(fmt.Sprintf("up to revision %d", made), "told nothing for")
		for _, at := range []storage.Read{{Match: storage.Any}, {Match: storage.NotOlderThan, Revision: made}, {Match: storage.Exact, Revision: made}} {
			if got := shown(r.list(storage.ListOptions{At: at})); got != fmt.Sprintf("a/x@%d", made) {
				t.Errorf("List at %+v: %q", at, got)
			}
			if got, err := r.Get(r.ctx, "a/x", at); err != nil || got.Revision != made {
				t.Errorf("Get at %+v: %+v, %v", at, got, err)
			}
		}
		// After ReadWait the storage below serves what the cache has not received.
		for _, at := range []storage.Read{{}, {Match: storage.NotOlderThan, Revision: unseen}, {Match: storage.Exact, Revision: unseen}} {
			if got := shown(r.list(storage.ListOptions{At: at})); got != fmt.Sprintf("a/x@%d", unseen) {
				t.Errorf("List at %+v: %q", at, got)
			}
			if got, err := r.Get(r.ctx, "a/x", at); err != nil || got.Revision != unseen {
				t.Errorf("Get at %+v: %+v, %v", at, got, err)
			}
		}
		r.source.release()
		w.want(fmt.Sprintf("MODIFIED a/x@%d", unseen))
		synctest.Wait()
		r.wantReady()
	})
}

// While the storage below cannot be reached, the cache serves what it has, where the contract allows it.
func TestUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRestorable(t)
		working, closed := b.backend(), memory.New(memory.Options{})
		closed.Close()
		r := newRig(t, b, cacher.Options{ReadWait: time.Second})
		first := r.put("a/x", "red")
		r.fill()
		w := r.watch(storage.WatchOptions{From: first})

		b.swap(closed)
		r.source.fail(fmt.Errorf("%w: nobody is there", storage.ErrUnavailable))
		time.Sleep(10 * time.Second)
		r.wantReady(fmt.Sprintf("up to revision %d", first), "cannot follow the storage", storage.ErrUnavailable.Error(), "being restored")
		for _, at := range []storage.Read{{Match: storage.Any}, {Match: storage.NotOlderThan, Revision: first}, {Match: storage.Exact, Revision: first}} {
			if got := shown(r.list(storage.ListOptions{At: at})); got != fmt.Sprintf("a/x@%d", first) {
				t.Errorf("List at %+v: %q", at, got)
			}
			if got, err := r.Get(r.ctx, "a/x", at); err != nil || got.Revision != first {
				t.Errorf("Get at %+v: %+v, %v", at, got, err)
			}
		}
		initial := r.watch(storage.WatchOptions{Initial: true, At: storage.Read{Match: storage.Any}})
		initial.want(fmt.Sprintf("ADDED a/x@%d", first), fmt.Sprintf("BOOKMARK @%d end", first))
		_, get := r.Get(r.ctx, "a/x", storage.Read{})
		_, list := r.List(r.ctx, storage.ListOptions{})
		_, future := r.List(r.ctx, storage.ListOptions{At: storage.Read{Match: storage.NotOlderThan, Revision: first + 9}})
		_, watch := r.Watch(r.ctx, storage.WatchOptions{})
		_, create := r.Create(r.ctx, "a/y", gadgetOf("a/y", "red", nil), storage.WriteOptions{})
		_, update := r.Update(r.ctx, "a/x", storage.WriteOptions{}, dropped)
		_, revision := r.Revision(r.ctx)
		for name, err := range map[string]error{
			"Get": get, "List": list, "List of the future": future, "Watch from now": watch, "Create": create, "Update": update, "Revision": revision,
		} {
			if !errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("%s: %v, want ErrUnavailable", name, err)
			}
		}

		b.swap(working)
		second := r.put("a/x", "blue")
		for _, v := range []*view{w, initial} {
			v.want(fmt.Sprintf("MODIFIED a/x@%d", second))
			v.wantIdle()
		}
		r.wantReady()
	})
}

// Changes that were compacted before the cache could follow again end the watches; no change is skipped.
func TestForgottenWhileUnavailable(t *testing.T) {
	t.Parallel()
	b := newRestorable(t)
	working, closed := b.backend(), memory.New(memory.Options{})
	closed.Close()
	var voids []error
	r := newRig(t, b, cacher.Options{Hooks: cacher.Hooks{Void: func(why error) { voids = append(voids, why) }}})
	first := r.put("a/x", "red")
	r.fill()
	w := r.watch(storage.WatchOptions{From: first})
	b.swap(closed)
	r.source.fail(storage.ErrUnavailable)
	r.eventually("the cache is alone", func() bool { return r.Ready(r.ctx) != nil })
	behind := newRig(t, working, cacher.Options{})
	behind.put("a/x", "blue")
	behind.put("a/x", "green")
	oldest := behind.compact()
	b.swap(working)
	var expired *storage.ExpiredError
	if n := w.ends(&expired); n != 0 || expired.Revision != first {
		t.Errorf("%d events, and then %v", n, expired)
	}
	r.eventually("the cache is filled anew", func() bool { return r.Ready(r.ctx) == nil && r.Stats().Filled })
	if len(voids) != 1 || !errors.Is(voids[0], storage.ErrCompacted) {
		t.Errorf("void: %v", voids)
	}
	_, err := r.Watch(r.ctx, storage.WatchOptions{From: first})
	wantExpired(t, err, first, oldest)
	w = r.watch(storage.WatchOptions{From: oldest})
	next := r.put("a/x", "red")
	w.want(fmt.Sprintf("MODIFIED a/x@%d", next))
}

// If the storage cannot be read at the start, Ready reports that, and the storage serves reads until the cache is filled.
func TestNotFilled(t *testing.T) {
	t.Parallel()
	var from sources
	r := newRig(t, nil, cacher.Options{Hooks: cacher.Hooks{List: from.hook}})
	made := r.put("a/x", "red")
	r.wantReady() // the cache is not in use yet
	if st := r.Stats(); st != (cacher.Stats{}) {
		t.Errorf("a cache that is not in use is %+v", st)
	}
	fails := func() error { return errors.New("mine") }
	r.source.stating.Store(&fails)
	if got := shown(r.list(storage.ListOptions{})); got != fmt.Sprintf("a/x@%d", made) || from.last() != cacher.FromStorage {
		t.Errorf("the list is %q, from %v", got, from.last())
	}
	r.wantReady("being filled", "mine")
	w := r.watch(storage.WatchOptions{})
	next := r.put("a/x", "blue")
	w.want(fmt.Sprintf("MODIFIED a/x@%d", next))
	r.source.stating.Store(nil)
	r.eventually("the cache is filled", func() bool { return r.Stats().Filled })
	r.wantReady()
	if got := shown(r.list(storage.ListOptions{})); got != fmt.Sprintf("a/x@%d", next) || from.last() != cacher.FromMemory {
		t.Errorf("the list is %q, from %v", got, from.last())
	}
	r.Close()
	r.wantReady("closed")
	if _, err := w.next(); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("Next after Close: %v", err)
	}
}

// unreadableIn checks which keys an error names, and that it has a reason.
func unreadableIn(t *testing.T, what string, err error, keys ...string) {
	t.Helper()
	var u *storage.UnreadableError
	if !errors.As(err, &u) {
		t.Errorf("%s: %v, want an UnreadableError for %q", what, err, keys)
		return
	}
	var got []string
	for one := range u.All() {
		got = append(got, one.Key)
		if one.Err == nil || !strings.Contains(err.Error(), one.Key) || !strings.Contains(err.Error(), one.Err.Error()) {
			t.Errorf("%s: %q does not say what is wrong with %q", what, err, one.Key)
		}
	}
	if !slices.Equal(got, keys) {
		t.Errorf("%s: the error names %q, want %q", what, got, keys)
	}
}

// An unreadable object makes only operations fail that have to show it, whether it was stored before or after the cache was
// filled, and until it is deleted.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	b, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := cacher.Options{IndexFields: []string{"spec.color"}}
	r := newRig(t, b, o)
	r.put("a/good", "red")
	r.put("a/turned", "red")
	start := r.put("b/good", "red")
	r.fill()
	watches := func() (covering, others map[string]*view) {
		in := func(ns, name string) storage.WatchOptions {
			return storage.WatchOptions{From: start, Selection: storage.Selection{Namespace: ns, Name: name}}
		}
		red := storage.WatchOptions{From: start, Selection: colored("red")}
		return map[string]*view{
				"all": r.watch(storage.WatchOptions{From: start}), "its namespace": r.watch(in("a", "")), "itself": r.watch(in("a", "bad")), "an index": r.watch(red),
			}, map[string]*view{
				"another namespace": r.watch(in("b", "")), "another name": r.watch(in("a", "good")),
			}
	}
	coveringBefore, others := watches()
	planted := r.plant("a/bad", broken)
	r.seen(planted)
	r.plant("a/turned", broken)
	coveringAfter, othersAfter := watches()
	ends := func(covering map[string]*view) {
		t.Helper()
		for name, w := range covering {
			_, err := w.next()
			unreadableIn(t, "watch of "+name, err, "a/bad")
		}
	}
	ends(coveringBefore)
	ends(coveringAfter)
	good, elsewhere := r.put("a/good", "blue"), r.put("b/good", "blue")
	for _, group := range []map[string]*view{others, othersAfter} {
		group["another namespace"].want(fmt.Sprintf("MODIFIED b/good@%d", elsewhere))
		group["another name"].want(fmt.Sprintf("MODIFIED a/good@%d", good))
	}

	forgotten := false // whether the history is compacted
	check := func(all ...string) {
		t.Helper()
		r.seen(elsewhere)
		for _, at := range []storage.Read{{}, {Match: storage.Any}, {Match: storage.NotOlderThan, Revision: elsewhere}, {Match: storage.Exact, Revision: elsewhere}} {
			for name, sel := range map[string]storage.Selection{"all": {}, "its namespace": {Namespace: "a"}, "an index": colored("blue")} {
				_, err := r.List(r.patiently(), storage.ListOptions{At: at, Selection: sel})
				unreadableIn(t, fmt.Sprintf("list of %s at %+v", name, at), err, all...)
			}
			_, err := r.Get(r.ctx, "a/bad", at)
			unreadableIn(t, "get", err, "a/bad")
			_, err = r.Watch(r.ctx, storage.WatchOptions{Initial: true, At: at, Selection: storage.Selection{Namespace: "b", Name: "good"}})
			if at.Match != storage.Exact && err != nil {
				t.Errorf("a watch of another: %v", err)
			}
			if got, err := r.Get(r.ctx, "a/good", at); err != nil || got.Revision != good {
				t.Errorf("Get of another at %+v: %+v, %v", at, got, err)
			}
			if got := r.list(storage.ListOptions{At: at, Selection: storage.Selection{Namespace: "b"}}); shown(got) != fmt.Sprintf("b/good@%d", elsewhere) {
				t.Errorf("another namespace at %+v is %q", at, shown(got))
			}
		}
		if at := (storage.Read{Match: storage.Exact, Revision: start}); !forgotten && r.list(storage.ListOptions{At: at}).Count != 3 {
			t.Error("the state before cannot be listed")
		}
		_, err := r.Update(r.ctx, "a/bad", storage.WriteOptions{}, dropped)
		unreadableIn(t, "update", err, "a/bad")
		if r.Stats().Records != 4 {
			t.Errorf("it is %+v, want four records", r.Stats())
		}
	}
	check("a/bad", "a/turned")

	r.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	r = newRig(t, openBolt(t, path, bolt.Options{}), o)
	fills := func() { // a list would fail
		t.Helper()
		r.eventually("the cache is filled", func() bool {
			_, err := r.Get(r.ctx, "a/good", storage.Read{Match: storage.Any})
			return err == nil && r.Stats().Filled
		})
	}
	for _, forgotten = range []bool{false, true} { // first in the replayed history, then in the state that is read
		fills()
		check("a/bad", "a/turned")
		r.compact()
		r.Close()
		r.open(o)
	}
	fills()

	w := r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "b"}})
	all := r.watch(storage.WatchOptions{})
	if _, err := r.DeleteUnreadable(r.ctx, "a/bad", storage.WriteOptions{DryRun: true}); err != nil {
		t.Error(err)
	}
	check("a/bad", "a/turned")
	if _, err := r.DeleteUnreadable(r.ctx, "a/bad", storage.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = all.next()
	unreadableIn(t, "watch of the deletion", err, "a/bad")
	_, err = r.List(r.patiently(), storage.ListOptions{})
	unreadableIn(t, "list", err, "a/turned")
	healed := r.plant("a/turned", `{"apiVersion":"test.example.com/v1","kind":"Gadget","metadata":{"name":"turned","namespace":"a"},"spec":{"size":3,"color":"blue"}}`)
	want := fmt.Sprintf("a/good@%d a/turned@%d b/good@%d", good, healed, elsewhere)
	if got := shown(r.list(storage.ListOptions{})); got != want {
		t.Errorf("the state is %q, want %q", got, want)
	}
	if got := shown(r.list(storage.ListOptions{Selection: colored("blue")})); got != want {
		t.Errorf("the index has %q, want %q", got, want)
	}
	next := r.put("b/good", "red")
	w.want(fmt.Sprintf("MODIFIED b/good@%d", next))
}

// A storage that is no storage.Source cannot deliver the other changes: it serves all reads until it can be listed.
func TestUnreadableBelowAnother(t *testing.T) {
	t.Parallel()
	below := newRig(t, nil, cacher.Options{})
	var from sources
	c := over(t, below.Cacher, cacher.Options{Hooks: cacher.Hooks{List: from.hook}})
	r := &rig{Cacher: c, t: t, ctx: below.ctx, backend: below.backend, store: below.store, source: below.source, root: below.root}
	made := r.put("a/good", "red")
	r.fill()
	w, other := r.watch(storage.WatchOptions{}), r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "b"}})
	r.plant("a/bad", broken)
	_, err := w.next()
	unreadableIn(t, "watch", err, "a/bad")
	if _, err := other.next(); err == nil {
		t.Error("a watch goes on")
	}
	_, err = r.List(r.patiently(), storage.ListOptions{})
	unreadableIn(t, "list", err, "a/bad")
	if got, err := r.Get(r.ctx, "a/good", storage.Read{}); err != nil || got.Revision != made {
		t.Errorf("Get: %+v, %v", got, err)
	}
	r.wantReady("being filled", "a/bad")
	w = r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "b"}})
	next := r.put("b/good", "red")
	w.want(fmt.Sprintf("ADDED b/good@%d", next))
	if _, err := r.DeleteUnreadable(r.ctx, "a/bad", storage.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.eventually("the cache is filled", func() bool { return r.Stats().Filled })
	if got := shown(r.list(storage.ListOptions{})); got != fmt.Sprintf("a/good@%d b/good@%d", made, next) || from.last() != cacher.FromMemory {
		t.Errorf("the state is %q, from %v", got, from.last())
	}
	r.wantReady()
}
