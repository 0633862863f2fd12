package storagetest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/storage"
)

var compactTests = []backendTest{
	{"history below is gone", func(t *testing.T, b *backend) {
		b.compactor()
		r1, r2, r3 := b.put("a", "1"), b.put("b", "1"), b.put("a", "2")
		b.compact(r2)
		b.wantCompacted(r1)
		b.wantGet("a", r2, "1", r1)
		b.wantGet("a", r3, "2", r3)
		b.watch(storage.WatchRange{From: r2}).want(fmt.Sprintf("put a=2@%d", r3))
	}},
	{"current values stay", func(t *testing.T, b *backend) {
		b.compactor()
		r1 := b.put("a", "1")
		b.put("b", "1")
		b.del("b")
		b.put("c", "1")
		now := b.del("c")
		b.compact(now)
		b.wantGet("a", 0, "1", r1)
		b.wantGet("a", now, "1", r1)
		b.wantMissing("b", now)
		b.wantMissing("c", 0)
		if got := pairs(b.list(storage.Range{At: now}).KVs); got != "a=1" {
			t.Errorf("Range = %q", got)
		}
		r := b.commit(storage.Commit{Key: "c", Value: []byte("2")})
		b.wantGet("c", 0, "2", r)
	}},
	{"twice or in the future", func(t *testing.T, b *backend) {
		c := b.compactor()
		b.put("a", "1")
		now := b.put("a", "2")
		b.compact(now)
		for _, revision := range []int64{now, now - 1} {
			if err := c.Compact(b.ctx, revision); !errors.Is(err, storage.ErrCompacted) {
				t.Errorf("Compact(%d): %v, want ErrCompacted", revision, err)
			}
		}
		if err := c.Compact(b.ctx, now+1); !errors.Is(err, storage.ErrFuture) {
			t.Errorf("Compact: %v, want ErrFuture", err)
		}
	}},
	{"a slow reader gets every change, or is told that some are lost", func(t *testing.T, b *backend) {
		b.compactor()
		f := b.watch(storage.WatchRange{From: b.revision()})
		r1 := b.put("a", "1")
		r2 := b.put("a", "2")
		b.compact(r2)
		r3 := b.put("a", "3")
		switch got, err := f.Next(b.ctx); {
		case errors.Is(err, storage.ErrCompacted):
			f.fails(storage.ErrCompacted)
		case err != nil || len(got.Changes) == 0:
			t.Errorf("Next: %+v, %v", got, err)
		default: // changes that a store has sent in advance may still be read
			f.pending = got.Changes
			f.want(fmt.Sprintf("put a=1@%d", r1), fmt.Sprintf("put a=2@%d", r2), fmt.Sprintf("put a=3@%d", r3))
		}
	}},
	{"an unread change is delivered or missed aloud", func(t *testing.T, b *backend) {
		b.compactor()
		f := b.watch(storage.WatchRange{From: b.revision()})
		r1 := b.put("a", "1")
		r2 := b.put("a", "2")
		b.compact(r1)
		got, err := f.Next(b.ctx)
		switch {
		case errors.Is(err, storage.ErrCompacted):
		case err != nil:
			t.Errorf("Next: %v", err)
		case len(got.Changes) == 0 || got.Changes[0].Revision != r1:
			t.Errorf("Next: %+v, want the changes of revisions %d and %d, or ErrCompacted", got, r1, r2)
		}
	}},
	{"beside readers and writers", compactBeside},
	{"a reader at the head has lost nothing", func(t *testing.T, b *backend) {
		b.compactor()
		f := b.watch(storage.WatchRange{From: b.revision()})
		r1 := b.put("a", "1")
		f.want(fmt.Sprintf("put a=1@%d", r1))
		f.wantIdle()
		b.compact(r1)
		r2 := b.put("a", "2")
		f.want(fmt.Sprintf("put a=2@%d", r2))
	}},
}

var closeTests = []backendTest{
	{"everything says ErrClosed", func(t *testing.T, b *backend) {
		r := b.put("a", "1")
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		_, get := b.Get(b.ctx, "a", 0)
		_, old := b.Get(b.ctx, "a", r)
		_, list := b.Range(b.ctx, storage.Range{})
		_, commit := b.Commit(b.ctx, storage.Commit{Key: "a", Expect: r, Value: []byte("2")})
		_, watch := b.Watch(b.ctx, storage.WatchRange{From: r})
		errs := map[string]error{"Get": get, "Get at a revision": old, "Range": list, "Commit": commit, "Watch": watch}
		if c, ok := b.Backend.(storage.Compactor); ok {
			errs["Compact"] = c.Compact(b.ctx, r)
		}
		for name, err := range errs {
			if !errors.Is(err, storage.ErrClosed) {
				t.Errorf("%s: %v, want ErrClosed", name, err)
			}
		}
		if err := b.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
	}},
	{"watches end", func(t *testing.T, b *backend) {
		waiting := b.watch(storage.WatchRange{From: b.revision()})
		later := b.watch(storage.WatchRange{From: b.revision()})
		done := make(chan error, 1)
		go func() {
			_, err := waiting.Next(b.ctx)
			done <- err
		}()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, storage.ErrClosed) {
			t.Errorf("the waiting Next: %v, want ErrClosed", err)
		}
		later.fails(storage.ErrClosed)
		later.RequestProgress()
		later.Close()
	}},
	{"while others write", func(t *testing.T, b *backend) {
		var all sync.WaitGroup
		begun := make(chan struct{}, 4)
		for w := range 4 {
			all.Go(func() {
				for i := 0; ; i++ {
					c := storage.Commit{Key: fmt.Sprint("k", w), Expect: storage.AnyRevision, Value: []byte(fmt.Sprint(i))}
					_, err := b.Commit(b.ctx, c)
					if errors.Is(err, storage.ErrClosed) {
						return
					}
					if err != nil {
						t.Errorf("Commit: %v", err)
						return
					}
					if i == 0 {
						begun <- struct{}{}
					}
				}
			})
		}
		for range 4 {
			<-begun
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	}},
}

// compactBeside compacts history while other goroutines read it. Each result and each change must be right, or ErrCompacted.
func compactBeside(t *testing.T, b *backend) {
	c := b.compactor()
	const commits = 200
	first := b.revision()
	var latest atomic.Int64
	latest.Store(b.put("k", "0"))
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		defer close(done)
		for i := 1; i <= commits; i++ {
			res, err := b.Commit(b.ctx, storage.Commit{Key: "k", Expect: storage.AnyRevision, Value: []byte(fmt.Sprint(i))})
			if err != nil {
				t.Errorf("Commit: %v", err)
				return
			}
			latest.Store(res.Revision)
			if i%20 == 0 {
				if err := c.Compact(b.ctx, res.Revision-3); err != nil && !errors.Is(err, storage.ErrCompacted) {
					t.Errorf("Compact: %v", err)
				}
			}
		}
	})
	going := func() bool {
		select {
		case <-done:
			return false
		default:
			return !t.Failed()
		}
	}
	all.Go(func() {
		for back := int64(0); going(); back = (back + 1) % 10 {
			at := max(latest.Load()-back, first)
			res, err := b.Range(b.ctx, storage.Range{At: at})
			switch {
			case errors.Is(err, storage.ErrCompacted):
			case err != nil || len(res.KVs) > 1 || res.Revision != at || len(res.KVs) == 1 && res.KVs[0].Revision > at:
				t.Errorf("Range at %d: %s at %d, %v", at, versions(res.KVs), res.Revision, err)
			}
		}
	})
	for range 3 {
		all.Go(func() {
			for going() {
				if err := consecutive(b, max(latest.Load()-2, first), going); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// consecutive follows the values of one key, which count up, until the feed is compacted.
func consecutive(b *backend, from int64, going func() bool) error {
	f, err := b.Watch(b.ctx, storage.WatchRange{Prefix: "k", From: from, Prev: true})
	if errors.Is(err, storage.ErrCompacted) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("Watch from %d: %w", from, err)
	}
	defer f.Close()
	for going() {
		f.RequestProgress()
		got, err := f.Next(b.ctx)
		if errors.Is(err, storage.ErrCompacted) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("Next: %w", err)
		}
		for _, c := range got.Changes {
			before := -1
			if c.Prev != nil {
				before, _ = strconv.Atoi(string(c.Prev.Value))
			}
			if string(c.Value) != strconv.Itoa(before+1) || c.Revision <= from {
				return fmt.Errorf("after revision %d: %q", from, text(c))
			}
			from = c.Revision
		}
	}
	return nil
}
