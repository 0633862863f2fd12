package cacher_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// smallWindow is a window for about sixty changes of gadgets.
const smallWindow = 64 << 10

// passes writes until the window has passed so many times.
func (r *rig) passes(windows int) {
	r.t.Helper()
	for range windows {
		for before := r.now(); r.Stats().Oldest <= before; {
			for i := range 20 {
				r.put(fmt.Sprintf("busy/k%d", i), "grey")
			}
			r.seen(r.now())
		}
	}
}

// Selections that the writes of passes do not match.
func idleSelections(t *testing.T) map[string]storage.Selection {
	t.Helper()
	app, err := labels.Parse("app=x")
	if err != nil {
		t.Fatal(err)
	}
	tier, err := labels.Parse("tier in (gold)")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]storage.Selection{
		"namespace":       {Namespace: "idle"},
		"name":            {Namespace: "idle", Name: "x"},
		"any namespace":   {Name: "x"},
		"indexed field":   colored("red"),
		"indexed label":   {Labels: app},
		"label":           {Labels: tier},
		"label and field": {Labels: tier, Fields: fields.OneTermEqualSelector("spec.color", "red")},
	}
}

func (r *rig) putIdle() int64 {
	r.t.Helper()
	g := gadgetOf("idle/x", "red", labels.Set{"app": "x", "tier": "gold"})
	record, err := r.store.Create(r.ctx, "idle/x", g, storage.WriteOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return record.Revision
}

func TestIdleWatchBesideBusyWriter(t *testing.T) {
	windows := 10
	if testing.Short() {
		windows = 3
	}
	for name, sel := range idleSelections(t) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, cacher.Options{WindowBytes: smallWindow, IndexFields: []string{"spec.color"}, IndexLabels: []string{"app"}})
			r.fill()
			reading, idle := r.watch(storage.WatchOptions{Selection: sel}), r.watch(storage.WatchOptions{Selection: sel})
			got := make(chan string, 1)
			go func() {
				e, err := reading.next()
				if err != nil {
					got <- err.Error()
					return
				}
				got <- eventText(e)
			}()
			r.passes(windows)
			want := fmt.Sprintf("ADDED idle/x@%d", r.putIdle())
			if text := <-got; text != want {
				t.Errorf("who waits gets %q, want %q", text, want)
			}
			idle.want(want)
			r.seen(r.now())
			r.passes(1)
			idle.RequestProgress()
			if e, err := idle.next(); err != nil || e.Type != watch.Bookmark || e.Record.Revision <= r.Stats().Oldest {
				t.Errorf("after another window: %v, %v; want a bookmark in the window", eventText(e), err)
			}
		})
	}
}

// A watch that begins, or continues, before changes that do not concern it is as idle as a watch that has read them.
func TestIdleWatchThatHasNotLooked(t *testing.T) {
	for name, sel := range idleSelections(t) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, cacher.Options{WindowBytes: smallWindow, IndexFields: []string{"spec.color"}, IndexLabels: []string{"app"}})
			r.fill()
			from := r.now()
			r.seen(r.put("busy/k0", "grey"))
			w := r.watch(storage.WatchOptions{Selection: sel, From: from})
			r.passes(2)
			w.want(fmt.Sprintf("ADDED idle/x@%d", r.putIdle()))
		})
	}
}

func TestIdleWatchAfterItsEvents(t *testing.T) {
	r := newRig(t, nil, cacher.Options{WindowBytes: 1 << 20})
	r.fill()
	from := r.now()
	first := r.put("idle/first", "red")
	for i := range 600 {
		r.put(fmt.Sprintf("busy/k%d", i%20), "grey")
	}
	r.seen(r.now())
	w := r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "idle"}, From: from})
	w.want(fmt.Sprintf("ADDED idle/first@%d", first))
	r.passes(1)
	w.want(fmt.Sprintf("ADDED idle/x@%d", r.putIdle()))
}

func TestIdleWatchAfterItsInitialEvents(t *testing.T) {
	r := newRig(t, nil, cacher.Options{WindowBytes: smallWindow})
	first := r.put("idle/first", "red")
	r.fill()
	w := r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "idle"}, Initial: true})
	r.seen(r.put("busy/k0", "grey"))
	w.want(fmt.Sprintf("ADDED idle/first@%d", first), fmt.Sprintf("BOOKMARK @%d end", first))
	r.passes(1)
	w.want(fmt.Sprintf("ADDED idle/x@%d", r.putIdle()))
}

// A watch that is not read delays nothing and keeps nothing in memory.
func TestWatchThatDoesNotRead(t *testing.T) {
	r := newRig(t, nil, cacher.Options{WindowBytes: smallWindow})
	r.fill()
	var stuck []*view
	for range 20 {
		stuck = append(stuck, r.watch(storage.WatchOptions{}))
	}
	behind := r.watch(storage.WatchOptions{})
	behind.want(fmt.Sprintf("ADDED busy/a@%d", r.put("busy/a", "red")))
	reader := r.watch(storage.WatchOptions{})
	for i := range 1000 {
		reader.want(fmt.Sprintf("%s busy/k@%d", map[bool]string{true: "ADDED", false: "MODIFIED"}[i == 0], r.put("busy/k", "grey")))
		if st := r.Stats(); st.LogBytes > smallWindow*5/4 {
			t.Fatalf("the log has %d bytes, the window %d", st.LogBytes, smallWindow)
		}
	}
	for _, w := range append(stuck, behind) {
		var expired *storage.ExpiredError
		if n := w.ends(&expired); n > 0 {
			t.Errorf("a watch that has lost changes shows %d events", n)
		}
		if expired.Oldest != r.Stats().Oldest {
			t.Errorf("it names %d as the oldest revision; it is %d", expired.Oldest, r.Stats().Oldest)
		}
		if _, err := w.next(); !errors.As(err, &expired) {
			t.Errorf("and then it says %v", err)
		}
	}
}

// An unreadable object ends every watch whose scope has it, whatever it selects, when the object appears and when it is
// deleted.
func TestUnreadableEndsIndexedWatches(t *testing.T) {
	for name, begin := range map[string]func(*rig){
		"nothing":      func(*rig) {},
		"another":      func(r *rig) { r.put("a/x", "blue") },
		"the selected": func(r *rig) { r.put("a/x", "red") },
	} {
		for _, over := range []string{"before", "deleted", "repaired"} {
			t.Run(name+" "+over, func(t *testing.T) {
				r := newRig(t, nil, cacher.Options{IndexFields: []string{"spec.color"}})
				r.fill()
				begin(r)
				if over != "before" {
					r.plant("a/x", broken)
				}
				r.seen(r.now())
				w, other := r.watch(storage.WatchOptions{Selection: colored("red")}), r.watch(storage.WatchOptions{
					Selection: storage.Selection{Namespace: "b", Fields: fields.OneTermEqualSelector("spec.color", "red")},
				})
				switch over {
				case "before":
					r.plant("a/x", broken)
				case "deleted":
					r.commit(storage.Commit{Key: r.root + "a/x", Expect: storage.AnyRevision, Delete: true})
				case "repaired":
					r.plant("a/x", `{"apiVersion":"test.example.com/v1","kind":"Gadget","metadata":{"name":"x","namespace":"a"},"spec":{"color":"blue"}}`)
				}
				want := fmt.Sprintf("ADDED b/y@%d", r.put("b/y", "red"))
				r.seen(r.now())
				var unreadable *storage.UnreadableError
				if n := w.ends(&unreadable); n > 0 || unreadable.Key != "a/x" {
					t.Errorf("%d events, then %v", n, unreadable)
				}
				other.want(want)
			})
		}
	}
}

// hooked is a label selector that calls a function before it matches.
type hooked struct {
	labels.Selector
	before func()
}

func (h hooked) Matches(l labels.Labels) bool {
	h.before()
	return h.Selector.Matches(l)
}

// A watch that is slow in processing what it has read from the log does not skip changes that leave the window meanwhile.
func TestWindowPassesWhileChangesAreJudged(t *testing.T) {
	r := newRig(t, nil, cacher.Options{WindowBytes: 1 << 20})
	r.fill()
	from := r.now()
	for i := range 600 {
		r.put(fmt.Sprintf("a/k%d", i%20), "grey")
	}
	last := r.now()
	r.seen(last)
	all, err := labels.Parse("!none")
	if err != nil {
		t.Fatal(err)
	}
	judged := 0
	var once sync.Once
	w := r.watch(storage.WatchOptions{From: from, Selection: storage.Selection{Labels: hooked{all, func() {
		if judged++; judged > 10 {
			once.Do(func() { r.passesBeside(last) })
		}
	}}}})
	inOrder(t, w, from)
}

// passesBeside makes the window pass a revision, if that is possible while the calling goroutine is in the selector.
func (r *rig) passesBeside(last int64) {
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		for r.Stats().Oldest <= last && r.ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}()
	for range 2000 {
		r.put("busy/k", "grey")
	}
	for end := time.After(300 * time.Millisecond); ; {
		select {
		case <-passed:
			return
		case <-end:
			return
		case <-time.After(10 * time.Millisecond):
			r.put("busy/k", "grey")
		}
	}
}

// inOrder reads until the watch of everything ends. No revision may be missing before.
func inOrder(t *testing.T, w *view, from int64) {
	t.Helper()
	for last := from; ; last++ {
		e, err := w.next()
		var expired *storage.ExpiredError
		switch {
		case errors.As(err, &expired):
			return
		case err != nil:
			t.Fatal(err)
		case e.Record.Revision != last+1:
			t.Fatalf("revision %d comes after %d", e.Record.Revision, last)
		case last+1 == w.r.now():
			return
		}
	}
}

// newBubble is newRig in a synctest bubble; everything ends with the bubble.
func newBubble(t *testing.T, o cacher.Options) *rig {
	t.Helper()
	r := newRig(t, memory.New(memory.Options{Window: 24 * time.Hour}), o)
	r.list(storage.ListOptions{})
	synctest.Wait()
	return r
}

// bookmarks reads a watch in a bubble, and records the greatest number of changes between two revisions that it received.
func bookmarks(t *testing.T, r *rig, o cacher.Options, write func(i int)) {
	t.Helper()
	w := r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "idle"}, Bookmarks: true})
	at := r.now()
	received := []int64{at}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			events, err := w.Next(r.ctx)
			if err != nil {
				return
			}
			for _, e := range events {
				received = append(received, e.Record.Revision)
			}
		}
	}()
	var window int64 // the least number of revisions in the full window
	full := false
	for i := range 4000 {
		write(i)
		synctest.Wait()
		if st := r.Stats(); st.Oldest > at {
			if n := st.Revision - st.Oldest; !full || n < window {
				full, window = true, n
			}
		}
	}
	w.Close()
	<-over
	received = append(received, r.now())
	var gap int64
	for i := range received[1:] {
		gap = max(gap, received[i+1]-received[i])
	}
	if !full || 3*gap > window {
		t.Errorf("a revision is told after up to %d; the window of %d bytes has %d", gap, o.WindowBytes, window)
	}
}

func TestBookmarksThreeTimesPerWindow(t *testing.T) {
	o := cacher.Options{WindowBytes: 1 << 20}
	t.Run("changes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newBubble(t, o)
			bookmarks(t, r, o, func(i int) { r.put(fmt.Sprintf("busy/k%d", i%10), "grey") })
		})
	})
	t.Run("forms", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newBubble(t, o)
			busy := r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "busy"}})
			bookmarks(t, r, o, func(i int) {
				r.put(fmt.Sprintf("busy/k%d", i%10), "grey")
				e, err := busy.next()
				if err == nil {
					_, err = e.Forms.Get(t.Context(), 1, func() ([]byte, error) { return make([]byte, 8<<10), nil })
				}
				if err != nil {
					t.Fatal(err)
				}
			})
		})
	})
}

// The log has at most its maximum number of bytes, whatever is written and whatever readers derive from it.
func TestLogBytes(t *testing.T) {
	for _, size := range []int{0, 4 << 10, 64 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			const most = 1 << 20
			r := newRig(t, nil, cacher.Options{WindowBytes: most})
			r.fill()
			w := r.watch(storage.WatchOptions{})
			body := strings.Repeat("x", size)
			bound := int64(most + most/4 + 4*size)
			for i := range 400 {
				r.put(fmt.Sprintf("a/k%d", i), "c"+body)
				e, err := w.next()
				if err != nil {
					t.Fatal(err)
				}
				for form := range 2 {
					if _, err := e.Forms.Get(t.Context(), form, func() ([]byte, error) { return make([]byte, size+100), nil }); err != nil {
						t.Fatal(err)
					}
				}
				if st := r.Stats(); st.LogBytes > bound {
					t.Fatalf("after %d changes the log has %d bytes of the %d that it may", i+1, st.LogBytes, most)
				}
			}
		})
	}
}
