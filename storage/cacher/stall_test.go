package cacher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// errOut is what feeds of an unreachable store end with.
var errOut = fmt.Errorf("%w: for a test", storage.ErrUnavailable)

// restorable is a backend that can be exchanged for an older one under those who use it.
type restorable struct {
	now  atomic.Pointer[memory.Backend]
	gone context.CancelCauseFunc
	life context.Context //nolint:containedctx // of the feeds of the backend that is in use
	mu   sync.Mutex      // guards gone and life
}

func newRestorable(t testing.TB) *restorable {
	b := &restorable{}
	b.begin(t, memory.New(memory.Options{}))
	return b
}

func (b *restorable) begin(t testing.TB, m *memory.Backend) {
	t.Cleanup(func() { m.Close() })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.life, b.gone = context.WithCancelCause(context.Background())
	b.now.Store(m)
}

// copyOf reads what is stored now, for restore.
func (b *restorable) copyOf(t testing.TB) storage.RangeResult {
	t.Helper()
	res, err := b.Range(context.Background(), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// restore goes back to a copy. Feeds end.
func (b *restorable) restore(t testing.TB, from storage.RangeResult) {
	t.Helper()
	m := memory.New(memory.Options{})
	err := m.Load(context.Background(), from.Revision, func(yield func(storage.KV, error) bool) {
		for _, kv := range from.KVs {
			if !yield(kv, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	end := b.gone
	b.mu.Unlock()
	b.begin(t, m)
	end(errOut)
}

func (b *restorable) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	return b.now.Load().Get(ctx, key, at)
}

func (b *restorable) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	return b.now.Load().Range(ctx, r)
}

func (b *restorable) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	return b.now.Load().Commit(ctx, c)
}

func (b *restorable) Stat(ctx context.Context, key string) (storage.Stat, error) {
	return b.now.Load().Stat(ctx, key)
}

func (b *restorable) Oldest(ctx context.Context) (int64, error) { return b.now.Load().Oldest(ctx) }

func (b *restorable) Compact(ctx context.Context, revision int64) error {
	return b.now.Load().Compact(ctx, revision)
}

func (b *restorable) Close() error { return b.now.Load().Close() }

func (b *restorable) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	b.mu.Lock()
	life, m := b.life, b.now.Load()
	b.mu.Unlock()
	f, err := m.Watch(ctx, w)
	if err != nil {
		return nil, err
	}
	return &restorableFeed{f, life}, nil
}

type restorableFeed struct {
	storage.Feed
	life context.Context //nolint:containedctx // of the backend
}

func (f *restorableFeed) Next(ctx context.Context) (storage.Changes, error) {
	once, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(f.life, stop)()
	got, err := f.Feed.Next(once)
	if f.life.Err() != nil {
		return storage.Changes{}, context.Cause(f.life)
	}
	return got, err
}

// rewound is a rig whose store will be set back: the cache has seen a later state than the copy.
func rewound(t *testing.T, o cacher.Options) (r *rig, b *restorable, past storage.RangeResult) {
	t.Helper()
	b = newRestorable(t)
	r = newRig(t, b, o)
	r.put("a/kept", "red")
	r.put("a/gone", "red")
	past = b.copyOf(t)
	r.fill()
	for range 20 {
		r.put("a/new", "red")
	}
	r.drop("a/gone")
	r.seen(r.now())
	return r, b, past
}

// healed checks that the cache shows the store as it is after it was set back.
func (r *rig) healed() {
	r.t.Helper()
	r.eventually("the cache is ready", func() bool {
		st := r.Stats()
		return r.Ready(r.ctx) == nil && st.Filled && st.Revision <= r.now()
	})
	want, err := r.store.List(r.ctx, storage.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, match := range []storage.Match{storage.Any, storage.Latest} {
		if p := r.list(storage.ListOptions{At: storage.Read{Match: match}}); shown(p) != shown(want) || p.Revision != want.Revision {
			r.t.Errorf("the list is %q at %d, want %q at %d", shown(p), p.Revision, shown(want), want.Revision)
		}
	}
	w := r.watch(storage.WatchOptions{})
	w.want(fmt.Sprintf("ADDED z/healed@%d", r.put("z/healed", "red")))
	r.drop("z/healed")
}

func TestStoreSetBack(t *testing.T) {
	for name, find := range map[string]func(*rig) error{
		"its feed ends": func(*rig) error { return nil },
		"a list": func(r *rig) error {
			p, err := r.List(r.ctx, storage.ListOptions{})
			if err == nil && (strings.Contains(shown(p), "a/new") || p.Revision > r.now()) {
				err = fmt.Errorf("it shows %q at %d", shown(p), p.Revision)
			}
			return err
		},
		"a get": func(r *rig) error {
			_, err := r.Get(r.ctx, "a/gone", storage.Read{})
			return err
		},
		"the revision": func(r *rig) error {
			_, err := r.Revision(r.ctx)
			return err
		},
		"a watch": func(r *rig) error {
			w, err := r.Watch(r.ctx, storage.WatchOptions{Initial: true})
			if err == nil {
				w.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			void := make(chan error, 10)
			r, b, past := rewound(t, cacher.Options{Hooks: cacher.Hooks{Void: func(why error) { void <- why }}})
			watches := []*view{
				r.watch(storage.WatchOptions{}), r.watch(storage.WatchOptions{Selection: colored("red")}),
				r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "b"}}), r.watch(storage.WatchOptions{From: past.Revision}),
				r.watch(storage.WatchOptions{From: r.now() + 50}),
			}
			initial := r.watch(storage.WatchOptions{Initial: true})
			b.restore(t, past)
			if err := find(r); err != nil {
				t.Error(err)
			}
			for i, w := range append(watches, initial) {
				var expired *storage.ExpiredError
				if n := w.ends(&expired); n > 0 && i < 3 {
					t.Errorf("watch %d shows %d events", i, n)
				}
			}
			if err := <-void; !strings.Contains(err.Error(), "set back") {
				t.Errorf("it is void: %v", err)
			}
			r.healed()
		})
	}
}

// While the cache is made anew reads are answered by the storage below, and Ready says why it is not ready.
func TestSetBackAndSilent(t *testing.T) {
	r, b, past := rewound(t, cacher.Options{ReadWait: 50 * time.Millisecond})
	r.put("a/later", "red")
	b.restore(t, past)
	r.source.hold()
	defer r.source.release()
	r.put("b/x", "red") // so that there is something to replay
	for range 3 {
		p := r.list(storage.ListOptions{})
		if want := fmt.Sprintf("a/gone@%d a/kept@%d b/x@%d", past.Revision, past.Revision-1, past.Revision+1); shown(p) != want {
			t.Errorf("the list is %q, want %q", shown(p), want)
		}
		if _, err := r.Get(r.patiently(), "a/new", storage.Read{}); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Get of what is gone: %v", err)
		}
		if _, err := r.Get(r.patiently(), "a/new", storage.Read{Match: storage.Any}); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Get of what is gone, of any state: %v", err)
		}
	}
	if err := r.Ready(r.ctx); err == nil || !strings.Contains(err.Error(), "set back") {
		t.Errorf("Ready is %v, want it to tell why", err)
	}
	w := r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "b"}, From: past.Revision})
	w.want(fmt.Sprintf("ADDED b/x@%d", past.Revision+1))
	r.source.release()
	r.healed()
}

// A reader that finds out while the cache is about to follow again does not leave it waiting for the past.
func TestSetBackWhileFollowing(t *testing.T) {
	r, b, past := rewound(t, cacher.Options{ReadWait: 50 * time.Millisecond})
	var once sync.Once
	find := func() {
		once.Do(func() {
			if _, err := r.Revision(r.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	r.source.following.Store(&find)
	b.restore(t, past)
	r.healed()
}

// The store is set back while the cache is being filled.
func TestSetBackWhileFilling(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("feed ends ", late), func(t *testing.T) {
			b := newRestorable(t)
			r := newRig(t, b, cacher.Options{ReadWait: 50 * time.Millisecond})
			r.put("a/kept", "red")
			past := b.copyOf(t)
			r.put("a/new", "red")
			r.put("a/new", "blue")
			compact := b.copyOf(t)
			var once sync.Once
			back := func() {
				once.Do(func() { b.restore(t, past) })
			}
			var before func() error
			if before = func() error { back(); return nil }; late {
				r.source.following.Store(&back)
			} else {
				r.source.stating.Store(&before)
			}
			p := r.list(storage.ListOptions{})
			if strings.Contains(shown(p), "a/new") || p.Revision >= compact.Revision {
				t.Errorf("the list is %q at %d", shown(p), p.Revision)
			}
			r.healed()
		})
	}
}

// Compaction below a cache that does not hear of changes: it is made anew, and its watches end.
func TestCompactionUnderStalledFeed(t *testing.T) {
	r := newRig(t, nil, cacher.Options{ReadWait: 20 * time.Millisecond})
	r.put("a/x", "red")
	r.fill()
	w, quiet := r.watch(storage.WatchOptions{}), r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "b"}})
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
	quiet.ends(&expired)
	r.healed()
	if _, err := r.Watch(r.ctx, storage.WatchOptions{From: first}); !errors.As(err, &expired) {
		t.Errorf("a watch from before the compaction: %v", err)
	}
}

// What the contract allows works while nothing can be asked; the rest fails within its deadline.
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

func TestStorageBelowClosed(t *testing.T) {
	r := newRig(t, nil, cacher.Options{})
	r.put("a/x", "red")
	r.fill()
	w, initial := r.watch(storage.WatchOptions{}), r.watch(storage.WatchOptions{Initial: true})
	if err := r.backend.Close(); err != nil {
		t.Fatal(err)
	}
	for _, v := range []*view{w, initial} {
		for {
			if _, err := v.next(); err != nil {
				if !errors.Is(err, storage.ErrClosed) {
					t.Errorf("a watch ends with %v, want ErrClosed", err)
				}
				break
			}
		}
	}
	r.allClosed()
	if err := r.Ready(r.ctx); err == nil {
		t.Error("it is ready")
	}
}

// allClosed checks that every call is ErrClosed.
func (r *rig) allClosed() {
	r.t.Helper()
	ctx := r.patiently()
	for name, call := range map[string]func() error{
		"Get":     func() error { _, err := r.Get(ctx, "a/x", storage.Read{}); return err },
		"Get any": func() error { _, err := r.Get(ctx, "a/x", storage.Read{Match: storage.Any}); return err },
		"List":    func() error { _, err := r.List(ctx, storage.ListOptions{}); return err },
		"List any": func() error {
			_, err := r.List(ctx, storage.ListOptions{At: storage.Read{Match: storage.Any}})
			return err
		},
		"Watch": func() error { _, err := r.Watch(ctx, storage.WatchOptions{}); return err },
		"Watch from": func() error {
			_, err := r.Watch(ctx, storage.WatchOptions{From: 2})
			return err
		},
		"Watch initial": func() error { _, err := r.Watch(ctx, storage.WatchOptions{Initial: true}); return err },
		"Revision":      func() error { _, err := r.Revision(ctx); return err },
		"Create": func() error {
			_, err := r.Create(ctx, "a/new", gadgetOf("a/new", "red", nil), storage.WriteOptions{})
			return err
		},
		"Update": func() error { _, err := r.Update(ctx, "a/x", storage.WriteOptions{}, dropped); return err },
		"DeleteUnreadable": func() error {
			_, err := r.DeleteUnreadable(ctx, "a/x", storage.WriteOptions{})
			return err
		},
	} {
		if err := call(); !errors.Is(err, storage.ErrClosed) {
			r.t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
}

// Close ends all that goes on, and leaves no goroutine.
func TestCloseInTheMiddle(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for round := range rounds {
		before := goleak.IgnoreCurrent()
		r := newRig(t, nil, cacher.Options{WindowBytes: smallWindow, IndexFields: []string{"spec.color"}, ReadWait: time.Minute})
		r.put("a/x", "red")
		var working sync.WaitGroup
		var begun sync.WaitGroup
		calls := []func() error{
			func() error { _, err := r.List(r.ctx, storage.ListOptions{}); return err },
			func() error { _, err := r.Get(r.ctx, "a/x", storage.Read{}); return err },
			func() error {
				_, err := r.Update(r.ctx, "a/x", storage.WriteOptions{}, changed(func(g *storagetest.Gadget) { g.Spec.Size++ }))
				return err
			},
			func() error { _, err := r.Revision(r.ctx); return err },
			func() error { return r.follow(storage.WatchOptions{Initial: true}) },
			func() error { return r.follow(storage.WatchOptions{Selection: colored("red")}) },
			func() error { return r.follow(storage.WatchOptions{Selection: colored("blue"), Bookmarks: true}) },
		}
		for _, call := range calls {
			begun.Add(1)
			working.Go(func() {
				for i := 0; ; i++ {
					err := call()
					if i == 0 {
						begun.Done()
					}
					if errors.Is(err, storage.ErrClosed) {
						return
					}
					var expired *storage.ExpiredError
					if err != nil && !errors.As(err, &expired) {
						t.Errorf("round %d: %v, want ErrClosed", round, err)
						return
					}
				}
			})
		}
		if round%2 == 0 {
			begun.Wait()
		}
		if round%3 == 0 {
			r.source.hold()
		}
		var closing sync.WaitGroup
		closing.Go(r.Close)
		r.Close()
		closing.Wait()
		working.Wait()
		r.allClosed()
		if err := r.backend.Close(); err != nil {
			t.Fatal(err)
		}
		if err := goleak.Find(before); err != nil {
			t.Fatal(err)
		}
	}
}

// follow reads some events of a watch.
func (r *rig) follow(o storage.WatchOptions) error {
	w, err := r.Watch(r.ctx, o)
	if err != nil {
		return err
	}
	defer w.Close()
	for range 3 {
		w.RequestProgress()
		if _, err := w.Next(r.ctx); err != nil {
			return err
		}
	}
	return nil
}

// Watches that the storage below serves, as the cache could not be filled, end with Close too.
func TestCloseOfWatchFromBelow(t *testing.T) {
	r := newRig(t, nil, cacher.Options{})
	fails := func() error { return errOut }
	r.source.stating.Store(&fails)
	w := r.watch(storage.WatchOptions{})
	if r.Stats().Filled {
		t.Fatal("the cache is filled")
	}
	w.want(fmt.Sprintf("ADDED a/x@%d", r.put("a/x", "red")))
	r.Close()
	if _, err := w.next(); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

// Initial events end at once when the watch does.
func TestInitialEventsEnd(t *testing.T) {
	for name, end := range map[string]struct {
		by   func(r *rig, b *restorable, past storage.RangeResult, w *view, stop func())
		with error
	}{
		"Close":   {func(_ *rig, _ *restorable, _ storage.RangeResult, w *view, _ func()) { w.Close() }, storage.ErrClosed},
		"context": {func(_ *rig, _ *restorable, _ storage.RangeResult, _ *view, stop func()) { stop() }, context.Canceled},
		"cache":   {func(r *rig, _ *restorable, _ storage.RangeResult, _ *view, _ func()) { r.Close() }, storage.ErrClosed},
		"set back": {func(r *rig, b *restorable, past storage.RangeResult, _ *view, _ func()) {
			b.restore(r.t, past)
			if _, err := r.Revision(r.ctx); err != nil {
				r.t.Error(err)
			}
		}, storage.ErrCompacted},
	} {
		t.Run(name, func(t *testing.T) {
			b := newRestorable(t)
			r := newRig(t, b, cacher.Options{})
			past := b.copyOf(t)
			for i := range 1200 {
				r.put(fmt.Sprintf("a/k%d", i), "red")
			}
			r.fill()
			ctx, stop := context.WithCancel(r.ctx)
			defer stop()
			w, err := r.Watch(ctx, storage.WatchOptions{Initial: true})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if events, err := w.Next(r.ctx); err != nil || len(events) == 0 {
				t.Fatal(len(events), err)
			}
			end.by(r, b, past, &view{Watch: w, r: r}, stop)
			if events, err := w.Next(context.Background()); !errors.Is(err, end.with) {
				t.Errorf("after the end there are %d events, %v; want %v", len(events), err, end.with)
			}
		})
	}
}

// A mark of progress that is lost is asked for again before a reader has lost its patience.
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

// A bookmark that is asked for before the cache has come to where the watch begins comes when it has.
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
				t.Errorf("%s, %v; want a bookmark", told(e), err)
			}
		}()
		for range 3 {
			synctest.Wait()
			r.put("a/x", "red")
		}
		<-read
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
		behind, quiet := r.watch(storage.WatchOptions{From: start}), r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "c"}, From: start})
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
		quiet.want(fmt.Sprintf("ADDED c/x@%d", r.now()))
		p := r.list(storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: second}})
		if want := fmt.Sprintf("a/x@%d b/x@%d", start+1, second); shown(p) != want {
			t.Errorf("the state at %d is %q, want %q", second, shown(p), want)
		}
	})
}

// plainly hides that a storage is more than a storage.Interface.
type plainly struct{ storage.Interface }

// Over a storage that is no storage.Source what cannot be read is answered by the storage below.
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
	if e, err := other.next(); err == nil && told(e) != "ADDED "+want {
		t.Errorf("the watch of others shows %q", told(e))
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
		t.Errorf("%v, %v; want a bookmark", told(e), err)
	}
}
