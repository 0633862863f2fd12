package storagetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

var compactTests = []backendTest{
	{"history below is gone", func(t *testing.T, b *backend) {
		b.compactor()
		r1, r2, r3 := b.put("a", "1"), b.put("b", "1"), b.put("a", "2")
		b.compact(r2)
		for _, at := range []int64{r1} {
			if _, err := b.Get(b.ctx, "a", at); !errors.Is(err, storage.ErrCompacted) {
				t.Errorf("Get at %d: %v, want ErrCompacted", at, err)
			}
			if _, err := b.Range(b.ctx, storage.Range{At: at}); !errors.Is(err, storage.ErrCompacted) {
				t.Errorf("Range at %d: %v, want ErrCompacted", at, err)
			}
			if f, err := b.Watch(b.ctx, storage.WatchRange{From: at}); !errors.Is(err, storage.ErrCompacted) {
				if err == nil {
					f.Close()
				}
				t.Errorf("Watch from %d: %v, want ErrCompacted", at, err)
			}
		}
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
	{"a slow reader has lost changes", func(t *testing.T, b *backend) {
		b.compactor()
		f := b.watch(storage.WatchRange{From: b.revision()})
		b.put("a", "1")
		b.compact(b.put("a", "2"))
		f.fails(storage.ErrCompacted)
		f.fails(storage.ErrCompacted)
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
	{"a reader at the head has lost nothing", func(t *testing.T, b *backend) {
		b.compactor()
		f := b.watch(storage.WatchRange{From: b.revision()})
		r1 := b.put("a", "1")
		f.want(fmt.Sprintf("put a=1@%d", r1))
		f.quiet()
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
		for name, err := range map[string]error{"Get": get, "Get at a revision": old, "Range": list, "Commit": commit, "Watch": watch} {
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

var ttlTests = []backendTest{
	{"deleted after the time, or refused", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{From: b.revision()})
		res, err := b.Commit(b.ctx, storage.Commit{Key: "a", Value: []byte("1"), TTL: time.Second})
		if errors.Is(err, storage.ErrUnsupported) {
			b.wantMissing("a", 0)
			t.Skip("the backend has no TTL")
		}
		if err != nil {
			t.Fatal(err)
		}
		b.wantGet("a", 0, "1", res.Revision)
		f.want(fmt.Sprintf("put a=1@%d", res.Revision))
		if c := f.next(); !c.Deleted || c.Key != "a" || c.Revision <= res.Revision {
			t.Errorf("got %q, want the deletion", text(c))
		}
		b.wantMissing("a", 0)
	}},
	{"a later write without one stays", func(t *testing.T, b *backend) {
		res, err := b.Commit(b.ctx, storage.Commit{Key: "a", Value: []byte("1"), TTL: time.Second})
		if errors.Is(err, storage.ErrUnsupported) {
			t.Skip("the backend has no TTL")
		}
		if err != nil {
			t.Fatal(err)
		}
		r2 := b.commit(storage.Commit{Key: "a", Expect: res.Revision, Value: []byte("2")})
		// A second key, which expires later, tells when the first would have.
		f := b.watch(storage.WatchRange{From: r2})
		b.commit(storage.Commit{Key: "b", Value: []byte("1"), TTL: time.Second})
		if c := f.next(); c.Key != "b" || c.Deleted {
			t.Fatalf("got %q", text(c))
		}
		if c := f.next(); c.Key != "b" || !c.Deleted {
			t.Fatalf("got %q, want the deletion of b", text(c))
		}
		b.wantGet("a", 0, "2", r2)
	}},
}
