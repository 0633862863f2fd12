package cacher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// audience is a number of watches, each read by a goroutine that writes what it receives like a server.
type audience struct {
	events  atomic.Int64 // number of events that all have written
	reads   atomic.Int64 // number of calls of Next that returned events
	expired atomic.Int64 // number of watches that were started again because they were too slow
	heard   func()       // called after each read; may be nil
	until   atomic.Int64 // the revision at which each watch ends; 0: not known yet
	done    sync.WaitGroup
	cancel  context.CancelFunc
}

// watchAll begins n watches, the i-th with selection(i).
func (a *audience) watchAll(b *testing.B, c *cacher.Cacher, n int, selection func(i int) storage.Selection) {
	ctx, cancel := context.WithCancel(b.Context())
	a.cancel = cancel
	now, err := c.Revision(ctx)
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		opts := storage.WatchOptions{From: now, Bookmarks: true, Selection: selection(i)}
		w, err := c.Watch(ctx, opts)
		if err != nil {
			b.Fatal(err)
		}
		a.done.Go(func() { a.follow(ctx, b, c, w, opts) })
	}
}

func (a *audience) follow(ctx context.Context, b *testing.B, c *cacher.Cacher, w storage.Watch, opts storage.WatchOptions) {
	var frame []byte
	for {
		events, err := w.Next(ctx)
		switch {
		case ctx.Err() != nil:
			w.Close()
			return
		case errors.Is(err, storage.ErrCompacted):
			a.expired.Add(1)
			w.Close()
			opts.From = c.Stats().Revision
			if w, err = c.Watch(ctx, opts); err == nil {
				continue
			}
		}
		if err != nil {
			b.Error(err)
			return
		}
		seen := int64(0)
		for _, e := range events {
			if e.Type != watch.Bookmark {
				seen++
				frame = append(append(frame[:0], `{"type":"`...), e.Type...)
				frame = append(e.Record.Body.AppendObject(append(frame, `","object":`...), e.Record.Revision), "}\n"...)
			}
		}
		a.events.Add(seen)
		a.reads.Add(1)
		if a.heard != nil && seen > 0 {
			a.heard()
		}
		if last := events[len(events)-1].Record.Revision; a.until.Load() != 0 && last >= a.until.Load() {
			w.Close()
			return
		}
	}
}

// anything selects everything.
func anything(int) storage.Selection { return storage.Selection{} }

// BenchmarkFanOut has one writer at full speed, and many watches of everything. An operation is a write that all watches have
// written to their clients. A watch that the window passes begins anew, and loses what it has not seen; expired counts these.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{100, 1_000, 5_000} {
		for _, stuck := range []bool{false, true} {
			name := fmt.Sprint(n)
			if stuck {
				name += " and one that does not read"
			}
			b.Run(name, func(b *testing.B) { fanOut(b, n, stuck) })
		}
	}
}

func fanOut(b *testing.B, n int, stuck bool) {
	objects := crowd{n: 10_000}
	backend := openBackend(b, "memory", "")
	defer backend.Close()
	objects.loadInto(b, backend)
	c := newCache(b, benchStore(b, backend), cacher.Options{})
	defer c.Close()
	var a audience
	a.watchAll(b, c, n, anything)
	if stuck {
		if _, err := c.Watch(b.Context(), storage.WatchOptions{From: c.Stats().Revision}); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	last := int64(0)
	for i := 0; b.Loop(); i++ {
		r, err := resize(b.Context(), c, objects.key(i*7919%objects.n))
		if err != nil {
			b.Fatal(err)
		}
		last = r.Revision
	}
	writing := time.Since(began)
	a.until.Store(last)
	r, err := resize(b.Context(), c, objects.key(1)) // wakes all of them
	if err != nil || r.Revision <= last {
		b.Fatal(r.Revision, err)
	}
	a.done.Wait()
	b.ReportMetric(float64(a.events.Load())/time.Since(began).Seconds(), "events/s")
	b.ReportMetric(float64(b.N)/writing.Seconds(), "writes/s")
	b.ReportMetric(float64(a.events.Load())/float64(a.reads.Load()), "events/read")
	b.ReportMetric(float64(a.expired.Load()), "expired")
	a.cancel()
}

// BenchmarkConcerned changes one object after the other, and waits for the one watch that the change concerns. There are
// 5,000 watches, each of one of 5,000 values of an indexed field; 50 such watches; and 5,000 watches without the index.
func BenchmarkConcerned(b *testing.B) {
	for _, of := range []struct {
		name    string
		watches int
		indexed bool
	}{{"50 indexed", 50, true}, {"5000 indexed", 5000, true}, {"50 not indexed", 50, false}, {"5000 not indexed", 5000, false}} {
		b.Run(of.name, func(b *testing.B) {
			objects := crowd{n: 10_000, colors: 5_000}
			backend := openBackend(b, "memory", "")
			defer backend.Close()
			objects.loadInto(b, backend)
			var o cacher.Options
			if of.indexed {
				o.IndexFields = []string{"spec.color"}
			}
			c := newCache(b, benchStore(b, backend), o)
			defer c.Close()
			heard := make(chan struct{}, 1)
			a := audience{heard: func() { heard <- struct{}{} }}
			a.watchAll(b, c, of.watches, func(i int) storage.Selection {
				return storage.Selection{Fields: fields.OneTermEqualSelector("spec.color", fmt.Sprintf("color%05d", i))}
			})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := resize(b.Context(), c, objects.key(i*7%of.watches)); err != nil {
					b.Fatal(err)
				}
				<-heard
			}
			b.ReportMetric(float64(a.reads.Load())/float64(b.N), "wakeups/op")
			a.cancel()
			a.done.Wait()
		})
	}
}

// BenchmarkIdleWatch measures the memory of one of 5,000 watches that wait, each in its own goroutine.
func BenchmarkIdleWatch(b *testing.B) {
	const n = 5_000
	for _, of := range []struct {
		name      string
		selection func(i int) storage.Selection
	}{
		{"of all", anything},
		{"of a value", func(i int) storage.Selection {
			return storage.Selection{Fields: fields.OneTermEqualSelector("spec.color", fmt.Sprintf("color%05d", i))}
		}},
	} {
		b.Run(of.name, func(b *testing.B) {
			backend := openBackend(b, "memory", "")
			defer backend.Close()
			objects := crowd{n: 1_000}
			objects.loadInto(b, backend)
			c := newCache(b, benchStore(b, backend), cacher.Options{IndexFields: []string{"spec.color"}})
			defer c.Close()
			for b.Loop() {
				before := inUse()
				var a audience
				a.watchAll(b, c, n, of.selection)
				if _, err := resize(b.Context(), c, objects.key(1)); err != nil { // each watch has been awake once
					b.Fatal(err)
				}
				time.Sleep(time.Second)
				b.ReportMetric(float64(inUse()-before)/n, "B/watch")
				a.cancel()
				a.done.Wait()
			}
		})
	}
}

// inUse returns the memory in use by heap and stacks.
func inUse() uint64 {
	liveHeap()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
