package cacher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
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
)

// sleepless is a backend whose feeds are no storage.Waker.
type sleepless struct{ storage.Backend }

// Watch implements storage.Backend.
func (b sleepless) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	feed, err := b.Backend.Watch(ctx, w)
	return struct{ storage.Feed }{feed}, err
}

// slumbering is a backend that counts its feeds. The feeds call their readers late.
type slumbering struct {
	storage.Backend
	late  time.Duration
	feeds atomic.Int64
}

// Watch implements storage.Backend.
func (b *slumbering) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	feed, err := b.Backend.Watch(ctx, w)
	if err != nil {
		return nil, err
	}
	waker, ok := feed.(storage.Waker)
	if !ok {
		return nil, fmt.Errorf("a %T is no storage.Waker", feed)
	}
	b.feeds.Add(1)
	return lateFeed{feed, waker, b.late}, nil
}

type lateFeed struct {
	storage.Feed
	waker storage.Waker
	late  time.Duration
}

// Wake implements storage.Waker.
func (f lateFeed) Wake(again func()) bool {
	return f.waker.Wake(func() {
		time.Sleep(f.late)
		again()
	})
}

// kind is one of many caches over one backend, and a watch of it that is not read meanwhile.
type kind struct {
	*cacher.Cacher
	t        testing.TB
	watch    storage.Watch
	received atomic.Int64 // number of deliveries of the storage below
}

// newKind makes a cache that has been written to, listed and watched.
func newKind(t testing.TB, b storage.Backend, name string) *kind {
	t.Helper()
	so, err := storagetest.GadgetOptions()
	if err != nil {
		t.Fatal(err)
	}
	so.Prefix = "/registry/" + name
	k := &kind{t: t}
	o := cacher.Options{Namespaced: true, Hooks: cacher.Hooks{Received: func(int) { k.received.Add(1) }}}
	if k.Cacher, err = cacher.New(storeOf(t, b, so), o); err != nil {
		t.Fatal(err)
	}
	k.create("a/first")
	page, err := k.List(context.Background(), storage.ListOptions{})
	if err != nil || page.Count != 1 {
		t.Fatalf("List: %d records, %v", page.Count, err)
	}
	if k.watch, err = k.Watch(context.Background(), storage.WatchOptions{From: page.Revision}); err != nil {
		t.Fatal(err)
	}
	k.wrote("a/second")
	return k
}

func (k *kind) create(key string) int64 {
	k.t.Helper()
	r, err := k.Create(context.Background(), key, gadgetOf(key, "red", nil), storage.WriteOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return r.Revision
}

// wrote creates an object, and reads the watch, which must show only that.
func (k *kind) wrote(key string) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitTime)
	defer cancel()
	want := fmt.Sprintf("ADDED %s@%d", key, k.create(key))
	events, err := k.watch.Next(ctx)
	if err != nil || len(events) != 1 || eventText(events[0]) != want {
		k.t.Fatalf("the watch shows %d events, %v; want %q", len(events), err, want)
	}
}

var (
	// bubble finds the bubble of testing/synctest to which a goroutine belongs.
	bubble = regexp.MustCompile(`^goroutine \d+ .*(synctest bubble \d+)`)
	// works finds a goroutine in storage code that is not one of testing.
	works = regexp.MustCompile(`(?m)^github\.com/keelson-dev/keelson/storage(/cacher|/memory)?\.`)
)

// workers returns the number of goroutines of the tested code in a test's bubble, when none of them can run.
func workers(t *testing.T) (n int) {
	t.Helper()
	synctest.Wait()
	stacks := make([]byte, 4<<20)
	all := strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n")
	mine := bubble.FindStringSubmatch(all[0])
	if mine == nil {
		t.Fatalf("the first goroutine is not that of the test in a bubble:\n%s", all[0])
	}
	for _, stack := range all[1:] {
		if m := bubble.FindStringSubmatch(stack); m != nil && m[1] == mine[1] && works.MatchString(stack) {
			n++
		}
	}
	return n
}

// Caches that were used and are at rest have no goroutine, and a write wakes only the cache that it concerns. Over feeds that
// cannot call a reader each cache has one goroutine.
func TestNoGoroutineAtRest(t *testing.T) {
	const n = 50
	for _, c := range []struct {
		name   string
		over   func(storage.Backend) storage.Backend
		atRest int
	}{
		{"feeds that wake", func(b storage.Backend) storage.Backend { return b }, 0},
		{"feeds that do not", func(b storage.Backend) storage.Backend { return sleepless{b} }, n},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Options{})
				var kinds []*kind
				for i := range n {
					kinds = append(kinds, newKind(t, c.over(b), fmt.Sprint("kind", i)))
				}
				time.Sleep(time.Second)
				if got := workers(t); got != c.atRest {
					t.Errorf("%d caches at rest have %d goroutines, want %d", n, got, c.atRest)
				}
				before := make([]int64, n)
				for i, k := range kinds {
					before[i] = k.received.Load()
				}
				const woken = 7
				kinds[woken].wrote("a/third")
				// A write needs a goroutine only while it is being processed.
				if got := workers(t); got != c.atRest {
					t.Errorf("after a write there are %d goroutines, want %d", got, c.atRest)
				}
				for i, k := range kinds {
					if got := k.received.Load() - before[i]; (got != 0) != (i == woken) {
						t.Errorf("the storage below has told cache %d something %d times; the write was one of cache %d", i, got, woken)
					}
				}
				began := time.Now()
				for _, k := range kinds {
					k.wrote("a/more")
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("the watches see writes %v late", took)
				}
				time.Sleep(time.Hour) // the caches check every ten seconds that the storage answers
				for i, k := range kinds {
					if err := k.Ready(context.Background()); err != nil {
						t.Errorf("cache %d after an hour: %v", i, err)
					}
					k.wrote("a/fourth")
				}
				for i, k := range kinds {
					if k.Close(); i == n/2 {
						if err := b.Close(); err != nil { // before the caches above it
							t.Fatal(err)
						}
					}
					if events, err := k.watch.Next(context.Background()); !errors.Is(err, storage.ErrClosed) {
						t.Errorf("the watch of cache %d has %d events, %v at the end", i, len(events), err)
					}
				}
				if got := workers(t); got != 0 {
					t.Errorf("when all is closed there are %d goroutines", got)
				}
			})
		})
	}
}

// Over a file only the file has a goroutine.
func TestNoGoroutineAtRestOverBolt(t *testing.T) {
	b := inBolt(t)
	before := goleak.IgnoreCurrent()
	for i := range 5 {
		k := newKind(t, b, fmt.Sprint("kind", i))
		defer k.Close()
		defer k.wrote("a/third")
	}
	if err := goleak.Find(before); err != nil { // it waits a while for goroutines to end
		t.Error(err)
	}
}

// While many changes come, one goroutine waits for them, and ends when they stop.
func TestGoroutineUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &slumbering{Backend: memory.New(memory.Options{})}
		defer b.Close()
		k := newKind(t, b, "kind")
		defer k.Close()
		for i := range 100 {
			time.Sleep(10 * time.Millisecond)
			k.wrote(fmt.Sprint("a/", i))
			if got := workers(t); got != 1 {
				t.Fatalf("after %d writes in a row there are %d goroutines, want 1", i, got)
			}
		}
		time.Sleep(time.Second)
		if got := workers(t); got != 0 {
			t.Errorf("a second after them there are %d goroutines", got)
		}
		for i := range 10 {
			time.Sleep(time.Second)
			k.wrote(fmt.Sprint("b/", i))
			if got := workers(t); got != 0 {
				t.Errorf("after a write in a second there are %d goroutines", got)
			}
		}
		if got := b.feeds.Load(); got != 1 {
			t.Errorf("the storage below is followed %d times, want once", got)
		}
	})
}

// Everything that ends a waiting cache also ends a cache at rest.
func TestEndAtRest(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"the cache is closed":   func(r *rig) { r.Close() },
		"the storage is closed": func(r *rig) { r.backend.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newBubble(t, cacher.Options{})
				w := r.watch(storage.WatchOptions{})
				time.Sleep(time.Second)
				if got := workers(t); got != 0 {
					t.Fatalf("it is not at rest, but has %d goroutines", got)
				}
				began := time.Now()
				end(r)
				if _, err := w.next(); !errors.Is(err, storage.ErrClosed) || time.Since(began) != 0 {
					t.Errorf("the watch ends with %v, %v late", err, time.Since(began))
				}
				if got := workers(t); got != 0 {
					t.Errorf("after its end it has %d goroutines", got)
				}
				r.allClosed()
			})
		})
	}
}

// A feed makes its pending call when it ends, and Close waits for that.
func TestCloseWaitsForTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 3 * time.Second
		b := &slumbering{Backend: memory.New(memory.Options{}), late: late}
		defer b.Close()
		k := newKind(t, b, "kind")
		time.Sleep(time.Second) // it is at rest, and has not yet checked that the storage answers
		began := time.Now()
		if k.Close(); time.Since(began) != late {
			t.Errorf("Close has returned after %v; the feed calls after %v", time.Since(began), late)
		}
	})
}

// Caches over one backend come to rest and are woken at random, and some are closed in between. Each watch shows every change
// once, in order, and at the time of the write; no goroutine is left.
func TestWakesAtRandom(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for round, end := 0, time.Now().Add(soak(t)); (round < rounds || time.Now().Before(end)) && !t.Failed(); round++ {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Options{})
			var kinds []*kind
			for i := range 6 {
				kinds = append(kinds, newKind(t, b, fmt.Sprint("kind", i)))
			}
			var working sync.WaitGroup
			for i, k := range kinds {
				w := &wakingWrites{kind: k, times: make([]atomic.Int64, 150), closing: round%2 == 0 && i%2 == 0}
				working.Go(w.write)
				working.Go(w.read)
			}
			working.Wait()
			if round%3 == 0 {
				if err := b.Close(); err != nil { // below caches at rest
					t.Fatal(err)
				}
			}
			for _, k := range kinds {
				k.Close()
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if got := workers(t); got != 0 {
				t.Errorf("when all is closed there are %d goroutines", got)
			}
		})
	}
}

// wakingWrites are writes to a cache with pauses in which it comes to rest, and a reader of the resulting changes.
type wakingWrites struct {
	*kind
	times   []atomic.Int64 // of each write, in nanoseconds since 1970
	closing bool           // the cache is closed before the end
}

func (w *wakingWrites) write() {
	ctx := context.Background()
	var ends sync.WaitGroup
	defer ends.Wait()
	for i := range w.times {
		key := fmt.Sprintf("a/k%d", i)
		w.times[i].Store(time.Now().UnixNano())
		r, err := w.Create(ctx, key, gadgetOf(key, "red", nil), storage.WriteOptions{})
		switch {
		case w.closing && errors.Is(err, storage.ErrClosed):
			return
		case err != nil:
			w.t.Errorf("Create: %v", err)
			return
		}
		switch n := rand.IntN(100); {
		case n < 10:
			time.Sleep(time.Second) // it is at rest
		case n < 40:
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond) // others write in the meantime
		case n < 50:
			w.watch.RequestProgress()
		case n < 60:
			if p, err := w.List(ctx, storage.ListOptions{}); err == nil && (p.Revision < r.Revision || p.Count != i+3) {
				w.t.Errorf("a list at %d has %d records; want %d at %d or later", p.Revision, p.Count, i+3, r.Revision)
			}
		}
		if w.closing && i == len(w.times)/2 {
			ends.Go(w.Close)
		}
	}
}

func (w *wakingWrites) read() {
	for next := 0; next < len(w.times); {
		events, err := w.watch.Next(context.Background())
		switch {
		case w.closing && errors.Is(err, storage.ErrClosed):
			return
		case err != nil:
			w.t.Errorf("after %d changes of %d: %v", next, len(w.times), err)
			return
		}
		for _, e := range events {
			if e.Record.Key == "" {
				continue // a bookmark
			}
			if want := fmt.Sprintf("a/k%d", next); e.Record.Key != want || e.Type != "ADDED" {
				w.t.Errorf("the watch shows %q, want %q added", eventText(e), want)
				return
			}
			if late := time.Duration(time.Now().UnixNano() - w.times[next].Load()); late != 0 {
				w.t.Errorf("the watch shows %q %v late", eventText(e), late)
			}
			next++
		}
	}
}
