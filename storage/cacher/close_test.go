package cacher_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/storagetest"
	"go.uber.org/goleak"
)

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

// allClosed checks that every call returns ErrClosed.
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

// Close ends everything in progress, and leaves no goroutine.
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

// Watches that the storage below serves, because the cache could not be filled, end with Close too.
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

// Initial events end at once when the watch ends.
func TestInitialEventsEnd(t *testing.T) {
	for name, end := range map[string]struct {
		by   func(r *rig, b restorable, past storage.RangeResult, w *view, stop func())
		with error
	}{
		"Close":   {func(_ *rig, _ restorable, _ storage.RangeResult, w *view, _ func()) { w.Close() }, storage.ErrClosed},
		"context": {func(_ *rig, _ restorable, _ storage.RangeResult, _ *view, stop func()) { stop() }, context.Canceled},
		"cache":   {func(r *rig, _ restorable, _ storage.RangeResult, _ *view, _ func()) { r.Close() }, storage.ErrClosed},
		"set back": {func(r *rig, b restorable, past storage.RangeResult, _ *view, _ func()) {
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
