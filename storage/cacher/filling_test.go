package cacher_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
	"k8s.io/apimachinery/pkg/labels"
)

// slow is a storage that takes a while to read everything. It counts its calls.
type slow struct {
	*storage.Store
	takes                 time.Duration
	fills, lists, watches atomic.Int64
	failing               atomic.Pointer[error] // the error of a fill; nil: none
}

func (s *slow) State(ctx context.Context, at int64) (storage.State, error) {
	s.fills.Add(1)
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return storage.State{}, ctx.Err()
	}
	if err := s.failing.Load(); err != nil {
		return storage.State{}, *err
	}
	return s.Store.State(ctx, at)
}

func (s *slow) List(ctx context.Context, o storage.ListOptions) (storage.Page, error) {
	s.lists.Add(1)
	return s.Store.List(ctx, o)
}

func (s *slow) Watch(ctx context.Context, o storage.WatchOptions) (storage.Watch, error) {
	s.watches.Add(1)
	return s.Store.Watch(ctx, o)
}

// filling runs a test in a bubble, with a cache that takes a while to fill.
func filling(t *testing.T, takes time.Duration, f func(t *testing.T, c *cacher.Cacher, below *slow)) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Options{})
		defer func() { _ = b.Close() }()
		o, err := storagetest.GadgetOptions()
		if err != nil {
			t.Fatal(err)
		}
		store, err := storage.NewStore(b, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			key := fmt.Sprint("a/", i)
			if _, err := store.Create(t.Context(), key, gadgetOf(key, "red", nil), storage.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		below := &slow{Store: store, takes: takes}
		c, err := cacher.New(below, cacher.Options{Namespaced: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		f(t, c, below)
	})
}

// Lists and watches of a cache that is being filled wait for that, and read nothing themselves.
func TestReadersShareTheFill(t *testing.T) {
	filling(t, 2*time.Second, func(t *testing.T, c *cacher.Cacher, below *slow) {
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				if i%2 == 0 {
					if p, err := c.List(t.Context(), storage.ListOptions{}); err != nil || p.Count != 10 {
						t.Errorf("%d records, %v", p.Count, err)
					}
					return
				}
				w, err := c.Watch(t.Context(), storage.WatchOptions{Initial: true})
				if err != nil {
					t.Error(err)
					return
				}
				w.Close()
			})
		}
		all.Wait()
		if below.fills.Load() != 1 || below.lists.Load() != 0 || below.watches.Load() != 0 {
			t.Errorf("40 readers: %d fills, %d lists, %d watches of what is below", below.fills.Load(), below.lists.Load(), below.watches.Load())
		}
	})
}

// A client that would have to wait longer gets an error with the time to try again; small reads are served by the storage
// below.
func TestReadersAreTurnedAwayFromALongFill(t *testing.T) {
	filling(t, time.Minute, func(t *testing.T, c *cacher.Cacher, below *slow) {
		turnedAway := func(want time.Duration) {
			t.Helper()
			for _, o := range []storage.ListOptions{
				{}, {At: storage.Read{Match: storage.Any}}, {At: storage.Read{Match: storage.NotOlderThan, Revision: 1}},
				{At: storage.Read{Match: storage.Exact, Revision: 3}}, {Selection: storage.Selection{Namespace: "a"}},
				{Selection: storage.Selection{Labels: labels.SelectorFromSet(labels.Set{"a": "b"})}, Limit: 5},
			} {
				_, err := c.List(t.Context(), o)
				var full *storage.FillingError
				if !errors.As(err, &full) || full.RetryAfter < want || full.RetryAfter > want+2*time.Second {
					t.Errorf("List(%+v): %v", o, err)
				} else if full.Error() != "storage is (re)initializing" {
					t.Errorf("it says %q", full)
				}
			}
			for _, o := range []storage.WatchOptions{{}, {From: 3}, {Initial: true}, {Initial: true, At: storage.Read{Match: storage.Any}}} {
				_, err := c.Watch(t.Context(), o)
				if full := new(storage.FillingError); !errors.As(err, &full) {
					t.Errorf("Watch(%+v): %v", o, err)
				}
			}
		}
		turnedAway(1 * time.Second)
		if below.lists.Load() != 0 || below.watches.Load() != 0 {
			t.Errorf("%d lists, %d watches of what is below", below.lists.Load(), below.watches.Load())
		}
		page, err := c.List(t.Context(), storage.ListOptions{At: storage.Read{Match: storage.Any}, Limit: 5})
		if err != nil || page.Count != 5 || page.Continue == "" {
			t.Errorf("a page of any state: %d, %v", page.Count, err)
		}
		page, err = c.List(t.Context(), storage.ListOptions{Limit: 5})
		if err != nil || page.Count != 5 || page.Continue == "" {
			t.Errorf("a page: %d, %v", page.Count, err)
		}
		if page, err = c.List(t.Context(), storage.ListOptions{Limit: 100, Continue: page.Continue}); err != nil || page.Count != 5 {
			t.Errorf("the next page: %d, %v", page.Count, err)
		}
		if page, err = c.List(t.Context(), storage.ListOptions{Selection: storage.Selection{Namespace: "a", Name: "3"}}); err != nil || page.Count != 1 {
			t.Errorf("one object: %d, %v", page.Count, err)
		}
		if _, err := c.Get(t.Context(), "a/3", storage.Read{Match: storage.Any}); err != nil {
			t.Errorf("a Get: %v", err)
		}
		time.Sleep(time.Minute)
		if page, err := c.List(t.Context(), storage.ListOptions{}); err != nil || page.Count != 10 {
			t.Errorf("in the end: %d, %v", page.Count, err)
		}
		if below.fills.Load() != 1 {
			t.Errorf("%d fills", below.fills.Load())
		}
	})
}

// A cache that cannot be filled because of a stored value refuses nothing: the storage below serves what it can.
func TestReadersOfACacheThatCannotBeFilled(t *testing.T) {
	filling(t, 10*time.Second, func(t *testing.T, c *cacher.Cacher, below *slow) {
		var err error = &storage.UnreadableError{Key: "a/x", Err: errors.New("unreadable")}
		below.failing.Store(&err)
		if _, err := c.List(t.Context(), storage.ListOptions{}); err == nil {
			t.Error("a list of a cache that is being filled for the first time is answered from below")
		}
		time.Sleep(10 * time.Second)
		for range 10 {
			if page, err := c.List(t.Context(), storage.ListOptions{}); err != nil || page.Count != 10 {
				t.Errorf("%d, %v", page.Count, err)
			}
			time.Sleep(time.Second)
		}
	})
}
