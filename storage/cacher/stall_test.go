package cacher_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// Compaction below a cache that does not receive the changes: the cache is filled anew, and its watches end.
func TestCompactionUnderStalledFeed(t *testing.T) {
	r := newRig(t, nil, cacher.Options{ReadWait: 20 * time.Millisecond})
	r.put("a/x", "red")
	r.fill()
	w, idle := r.watch(storage.WatchOptions{}), r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "b"}})
	r.source.hold()
	first := r.list(storage.ListOptions{}).Revision
	for range 10 {
		r.put("a/x", "blue")
	}
	if p := r.list(storage.ListOptions{}); p.Revision != r.now() {
		t.Errorf("the list is at %d, the store at %d", p.Revision, r.now())
	}
	if p := r.list(storage.ListOptions{At: storage.Read{Match: storage.Any}}); p.Revision != first {
		t.Errorf("any state is at %d; the cache has %d", p.Revision, first)
	}
	r.compact()
	r.source.fail(errOut)
	r.source.release()
	var expired *storage.ExpiredError
	w.ends(&expired)
	idle.ends(&expired)
	r.healed()
	if _, err := r.Watch(r.ctx, storage.WatchOptions{From: first}); !errors.As(err, &expired) {
		t.Errorf("a watch from before the compaction: %v", err)
	}
}

// While the store cannot be reached, everything works that the contract allows; the rest fails within its deadline.
func TestFeedEnds(t *testing.T) {
	r := newRig(t, nil, cacher.Options{ReadWait: 20 * time.Millisecond})
	r.put("a/x", "red")
	r.fill()
	w := r.watch(storage.WatchOptions{})
	r.source.hold()
	for range 3 {
		r.source.fail(errOut)
		r.eventually("it says why it is not ready", func() bool {
			err := r.Ready(r.ctx)
			return errors.Is(err, storage.ErrUnavailable)
		})
		want := fmt.Sprintf("MODIFIED a/x@%d", r.put("a/x", "blue"))
		r.source.release()
		w.want(want)
		r.eventually("it is ready", func() bool { return r.Ready(r.ctx) == nil })
		r.source.hold()
	}
	r.source.release()
}

// A progress mark that is lost is requested again before a reader stops waiting.
func TestLostProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sources []cacher.Source
		r := newBubble(t, cacher.Options{ReadWait: 5 * time.Second, Hooks: cacher.Hooks{List: func(s cacher.Source) { sources = append(sources, s) }}})
		lost := 0
		deaf := func() bool { lost++; return lost <= 3 }
		r.source.deaf.Store(&deaf)
		now := r.aside()
		if p := r.list(storage.ListOptions{}); p.Revision != now {
			t.Errorf("the list is at %d, want %d", p.Revision, now)
		}
		if got := sources[len(sources)-1]; got != cacher.FromMemory {
			t.Errorf("it is answered from %v after %d requests", got, lost)
		}
	})
}

func TestReadyTellsOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBubble(t, cacher.Options{})
		for range 20 {
			if time.Sleep(7 * time.Second); r.Ready(r.ctx) != nil {
				t.Fatalf("a quiet store, and Ready is %v", r.Ready(r.ctx))
			}
		}
		r.source.hold()
		time.Sleep(20 * time.Second)
		if err := r.Ready(r.ctx); err != nil {
			t.Errorf("after 20 s: %v", err)
		}
		time.Sleep(30 * time.Second)
		if err := r.Ready(r.ctx); err == nil || !strings.Contains(err.Error(), "told nothing") {
			t.Errorf("after 50 s: %v", err)
		}
		r.source.release()
		synctest.Wait()
		if err := r.Ready(r.ctx); err != nil {
			t.Errorf("after it has told something: %v", err)
		}
	})
}

func TestWindowByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBubble(t, cacher.Options{Window: 3 * time.Minute})
		start := r.now()
		r.put("a/x", "red")
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		second := r.put("b/x", "red")
		synctest.Wait()
		behind, idle := r.watch(storage.WatchOptions{From: start}), r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "c"}, From: start})
		if st := r.Stats(); st.Oldest != start || st.Changes != 2 {
			t.Errorf("after two minutes: %+v", st)
		}
		time.Sleep(4 * time.Minute)
		if st := r.Stats(); st.Oldest != second || st.Changes != 0 || st.LogBytes != 0 {
			t.Errorf("after all have left the window: %+v", st)
		}
		var expired *storage.ExpiredError
		behind.ends(&expired)
		if _, err := r.Watch(r.ctx, storage.WatchOptions{From: start}); !errors.As(err, &expired) || expired.Oldest != second {
			t.Errorf("a watch from before the window: %v", err)
		}
		w := r.watch(storage.WatchOptions{From: second})
		time.Sleep(time.Hour)
		w.want(fmt.Sprintf("ADDED c/x@%d", r.put("c/x", "red")))
		idle.want(fmt.Sprintf("ADDED c/x@%d", r.now()))
		p := r.list(storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: second}})
		if want := fmt.Sprintf("a/x@%d b/x@%d", start+1, second); shown(p) != want {
			t.Errorf("the state at %d is %q, want %q", second, shown(p), want)
		}
	})
}

// plainly hides that a storage is more than a storage.Interface.
type plainly struct{ storage.Interface }

// Over a storage that is no storage.Source the storage below answers for unreadable objects.
func TestPlainUnreadable(t *testing.T) {
	r := newRig(t, nil, cacher.Options{})
	c, err := cacher.New(plainly{r.store}, cacher.Options{Namespaced: true, ReadWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r.Cacher = c
	r.put("a/x", "red")
	r.fill()
	covers, other := r.watch(storage.WatchOptions{}), r.watch(storage.WatchOptions{Selection: storage.Selection{
		Namespace: "b", Fields: fields.OneTermEqualSelector("spec.color", "red"),
	}})
	r.plant("a/y", broken)
	var unreadable *storage.UnreadableError
	covers.ends(&unreadable)
	if _, err := r.List(r.patiently(), storage.ListOptions{}); !errors.As(err, &unreadable) {
		t.Errorf("the list of all: %v", err)
	}
	want := fmt.Sprintf("b/z@%d", r.put("b/z", "red"))
	if p := r.list(storage.ListOptions{Selection: storage.Selection{Namespace: "b"}}); shown(p) != want {
		t.Errorf("the list of the others is %q, want %q", shown(p), want)
	}
	if e, err := other.next(); err == nil && eventText(e) != "ADDED "+want {
		t.Errorf("the watch of others shows %q", eventText(e))
	}
	r.commit(storage.Commit{Key: r.root + "a/y", Expect: storage.AnyRevision, Delete: true})
	r.eventually("the cache is ready", func() bool { return r.Ready(r.ctx) == nil && r.Stats().Filled })
	if p := r.list(storage.ListOptions{At: storage.Read{Match: storage.Any}}); p.Count != 2 {
		t.Errorf("in the end there are %q", shown(p))
	}
	again := r.watch(storage.WatchOptions{})
	again.want(fmt.Sprintf("ADDED b/new@%d", r.put("b/new", "red")))
	again.RequestProgress()
	if e, err := again.next(); err != nil || e.Type != watch.Bookmark {
		t.Errorf("%v, %v; want a bookmark", eventText(e), err)
	}
}

// A storage below that can be followed and then delivers nothing is not called without a pause.
func TestFeedsThatEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBubble(t, cacher.Options{})
		begun := 0
		ends := func() { begun++; r.source.fail(errOut) }
		r.source.following.Store(&ends)
		r.source.fail(errOut)
		time.Sleep(time.Minute)
		synctest.Wait()
		if begun < 10 || begun > 100 {
			t.Errorf("in a minute it was followed %d times", begun)
		}
		r.source.following.Store(nil)
		time.Sleep(5 * time.Second)
		if err := r.Ready(r.ctx); err != nil {
			t.Errorf("after it tells something: %v", err)
		}
	})
}
