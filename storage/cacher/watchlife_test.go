package cacher_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// A watch begins at a revision that never comes, and a bookmark is requested. The cache must not request progress without
// end, neither while the watch is open nor after.
func TestBookmarkThatNeverComes(t *testing.T) {
	for name, closed := range map[string]bool{"open": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newBubble(t, cacher.Options{})
				asked := 0
				counting := func() bool { asked++; return false }
				r.source.deaf.Store(&counting)
				w := r.watch(storage.WatchOptions{From: math.MaxInt64})
				w.RequestProgress()
				if closed {
					w.Close()
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if asked > 600 { // an idle store is asked every ten seconds
					t.Errorf("the storage below was asked %d times in an hour", asked)
				}
			})
		})
	}
}

// A watch whose context has ended is removed, although it is neither read nor closed.
func TestAbandonedWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBubble(t, cacher.Options{IndexFields: []string{"spec.color"}})
		ctx, stop := context.WithCancel(r.ctx)
		for _, o := range []storage.WatchOptions{{}, {Selection: colored("red")}, {Selection: storage.Selection{Namespace: "a", Name: "x"}}} {
			if _, err := r.Watch(ctx, o); err != nil {
				t.Fatal(err)
			}
		}
		kept := r.watch(storage.WatchOptions{})
		if n := r.Stats().Watchers; n != 4 {
			t.Errorf("there are %d watches, want 4", n)
		}
		stop()
		time.Sleep(time.Minute)
		if n := r.Stats().Watchers; n != 1 {
			t.Errorf("there are %d watches after the context has ended, want 1", n)
		}
		kept.want(fmt.Sprintf("ADDED a/x@%d", r.put("a/x", "red")))
	})
}

// fickle is a context that cannot be compared with another one.
type fickle struct {
	context.Context //nolint:containedctx // the embedded context
	_               []int
}

func TestWatchWithAnyContext(t *testing.T) {
	r := newRig(t, nil, cacher.Options{})
	r.fill()
	ctx := fickle{Context: r.patiently()}
	w, err := r.Watch(ctx, storage.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.RequestProgress()
	if events, err := w.Next(ctx); err != nil || len(events) != 1 {
		t.Errorf("%d events, %v; want a bookmark", len(events), err)
	}
}

// Keys deeper below a namespace, which another client has written, are in the namespace, for a watch as for a list.
func TestForeignKeyInNamespace(t *testing.T) {
	r := newRig(t, nil, cacher.Options{})
	r.fill()
	in := storage.Selection{Namespace: "a"}
	w := r.watch(storage.WatchOptions{Selection: in})
	at := r.plant("a/b/c", `{"apiVersion":"test.example.com/v1","kind":"Gadget","metadata":{"name":"c","namespace":"a"},"spec":{"size":1}}`)
	after := r.put("a/x", "red")
	if got, want := shown(r.list(storage.ListOptions{Selection: in})), fmt.Sprintf("a/b/c@%d a/x@%d", at, after); got != want {
		t.Errorf("the list is %q, want %q", got, want)
	}
	w.want(fmt.Sprintf("ADDED a/b/c@%d", at), fmt.Sprintf("ADDED a/x@%d", after))
}

// Progress can be requested while the changes that the watch has read are processed, after the cache was filled anew.
func TestProgressWhileChangesAreJudged(t *testing.T) {
	b := newRestorable(t)
	r := newRig(t, b, cacher.Options{})
	past := b.copyOf(t)
	r.fill()
	from := r.now()
	for i := range 200 {
		r.put(fmt.Sprintf("a/k%d", i%20), "grey")
	}
	r.seen(r.now())
	all, err := labels.Parse("!none")
	if err != nil {
		t.Fatal(err)
	}
	judged := 0
	var w *view
	asking := make(chan struct{})
	o := storage.WatchOptions{From: from, Selection: storage.Selection{Labels: hooked{all, func() {
		switch judged++; {
		case w == nil: // the change with which it begins
		case judged == 150:
			b.restore(t, past)
			if _, err := r.Revision(r.ctx); err != nil {
				t.Error(err)
			}
			go func() {
				defer close(asking)
				w.RequestProgress()
			}()
		case judged > 150:
			time.Sleep(50 * time.Microsecond) // so that the two mostly happen at the same time
		}
	}}}}
	w = r.watch(o)
	for err == nil {
		_, err = w.next()
	}
	var expired *storage.ExpiredError
	if !errors.As(err, &expired) {
		t.Errorf("it ends with %v", err)
	}
	<-asking
}

// A storage below may deliver a change instead of a progress mark; then the mark is requested again at once.
func TestChangeInPlaceOfProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBubble(t, cacher.Options{})
		lost := false
		once := func() bool { first := !lost; lost = true; return first }
		r.source.deaf.Store(&once)
		r.source.hold()
		r.put("a/x", "red")
		synctest.Wait() // the feed has the change, and nothing else
		now, began := r.aside(), time.Now()
		read := make(chan struct{})
		go func() {
			defer close(read)
			if p := r.list(storage.ListOptions{}); p.Revision != now {
				t.Errorf("the list is at %d, want %d", p.Revision, now)
			}
		}()
		synctest.Wait()
		r.source.release()
		<-read
		if passed := time.Since(began); passed > 0 {
			t.Errorf("it has waited for %v", passed)
		}
	})
}

// finalized counts when the watches of the storage below are garbage.
type finalized struct {
	*disturbed
	forgotten atomic.Bool
}

func (f *finalized) Watch(ctx context.Context, o storage.WatchOptions) (storage.Watch, error) {
	w, err := f.disturbed.Watch(ctx, o)
	if err == nil {
		goruntime.SetFinalizer(w, func(any) { f.forgotten.Store(true) })
	}
	return w, err
}

// A watch that the storage below serves is not kept after its context has ended.
func TestAbandonedWatchFromBelow(t *testing.T) {
	r := newRig(t, nil, cacher.Options{})
	fails := func() error { return errOut }
	r.source.stating.Store(&fails)
	below := &finalized{disturbed: r.source}
	r.Cacher = over(t, below, cacher.Options{})
	ctx, stop := context.WithCancel(r.ctx)
	if _, err := r.Watch(ctx, storage.WatchOptions{}); err != nil {
		t.Fatal(err)
	}
	stop()
	r.eventually("the watch is forgotten", func() bool { goruntime.GC(); return below.forgotten.Load() })
}

// If a bookmark is requested before the cache has reached the start of the watch, it comes when the cache has reached it.
func TestBookmarkOfTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBubble(t, cacher.Options{})
		from := r.now() + 2
		w := r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "b"}, From: from})
		w.RequestProgress()
		read := make(chan struct{})
		go func() {
			defer close(read)
			if e, err := w.next(); err != nil || e.Type != watch.Bookmark || e.Record.Revision < from {
				t.Errorf("%s, %v; want a bookmark", eventText(e), err)
			}
		}()
		for range 3 {
			synctest.Wait()
			r.put("a/x", "red")
		}
		<-read
	})
}
