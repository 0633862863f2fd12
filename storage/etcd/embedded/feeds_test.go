package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	"github.com/keelson-dev/keelson/storage/storagetest"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
)

// heap returns the memory in use after a garbage collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// A reader that is far behind gets its changes from etcd: little of them waits in this process.
func TestWhatASlowReaderCosts(t *testing.T) {
	changes := 120
	if testing.Short() {
		changes = 60
	}
	p := serveElsewhere(t, embedded.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	b := open(t, etcd.Options{Endpoints: []string{p.endpoint}, CompactionInterval: -1})
	ctx := bounded(t)
	const feeds = 4
	var all []storage.Feed
	for range feeds {
		f, err := b.Watch(ctx, storage.WatchRange{From: revision(t, b), Prev: true})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		all = append(all, f)
	}
	before, last := heap(), int64(0)
	value := bytes.Repeat([]byte("v"), 1<<20)
	for i := range changes {
		last = mustCommit(t, b, storage.Commit{Key: fmt.Sprint("k", i%3), Expect: storage.AnyRevision, Value: value})
	}
	grown := heap() - before
	t.Logf("%d feeds are %d MiB behind, and hold %d KiB each", feeds, changes, grown/feeds>>10)
	if most := int64(16 << 20 * feeds); grown > most {
		t.Errorf("the heap has grown by %d MiB, want at most %d", grown>>20, most>>20)
	}
	for _, f := range all {
		seen := 0
		for at := int64(0); at < last; {
			got, err := f.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range got.Changes {
				if seen++; c.Revision <= at || len(c.Value) != len(value) {
					t.Fatalf("revision %d with %d bytes after %d", c.Revision, len(c.Value), at)
				}
				at = c.Revision
			}
		}
		if seen != changes {
			t.Errorf("%d changes, want %d", seen, changes)
		}
	}
}

// The end of a lease deletes its keys at one revision. With the previous values, this is more than etcd sends at once.
func TestARevisionInFragments(t *testing.T) {
	s := start(t, embedded.Options{})
	c, b := rawOf(t, s), open(t, etcd.Options{Endpoints: s.Endpoints(), CompactionInterval: -1})
	ctx := bounded(t)
	lease, err := c.Grant(ctx, 3600)
	if err != nil {
		t.Fatal(err)
	}
	const keys, size = 40, 200 << 10
	for i := range keys {
		mustPut(t, c, fmt.Sprintf("k%02d", i), string(make([]byte, size)), clientv3.WithLease(lease.ID))
	}
	late := revision(t, b)
	live, err := b.Watch(ctx, storage.WatchRange{Prefix: "k", From: late, Prev: true})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if _, err := c.Revoke(ctx, lease.ID); err != nil {
		t.Fatal(err)
	}
	behind, err := b.Watch(ctx, storage.WatchRange{Prefix: "k", From: late - 1, Prev: true})
	if err != nil {
		t.Fatal(err)
	}
	defer behind.Close()
	if got, err := behind.Next(ctx); err != nil || len(got.Changes) != 1 || got.Changes[0].Revision != late {
		t.Fatalf("%d changes, %v; want the last put", len(got.Changes), err)
	}
	for name, f := range map[string]storage.Feed{"live": live, "behind": behind} {
		got, err := f.Next(ctx)
		if err != nil || len(got.Changes) != keys || got.Progress != late+1 {
			t.Fatalf("%s: %d changes up to %d, %v; want %d of revision %d", name, len(got.Changes), got.Progress, err, keys, late+1)
		}
		for i, c := range got.Changes {
			if c.Key != fmt.Sprintf("k%02d", i) || !c.Deleted || c.Prev == nil || len(c.Prev.Value) != size {
				t.Errorf("%s: change %d is of %s, deleted %v", name, i, c.Key, c.Deleted)
			}
		}
	}
}

// Feeds are read, asked for progress, abandoned and closed while connections break, and the backend is closed meanwhile. All
// of them end, and no goroutine is left.
func TestFeedsInAStorm(t *testing.T) {
	p := serveElsewhere(t, embedded.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	proxy := storagetest.NewProxy(t, address(t, p.endpoint))
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		before := goleak.IgnoreCurrent()
		b, err := etcd.Open(bounded(t), etcd.Options{Endpoints: []string{proxy.Addr()}, CompactionInterval: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() { storm(t, b, i) })
		}
		for range 5 {
			time.Sleep(time.Duration(20+rand.IntN(100)) * time.Millisecond)
			proxy.Cut()
		}
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		all.Wait()
		// The proxy's goroutines end later.
		until(t, "nothing is left", func() bool {
			return goleak.Find(before, goleak.IgnoreAnyFunction("github.com/keelson-dev/keelson/storage/storagetest.(*link).run")) == nil
		})
	}
}

// storm uses a backend until it is closed.
func storm(t *testing.T, b storage.Backend, who int) {
	key := fmt.Sprint("k", who)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(100))*time.Millisecond)
		_, err := b.Commit(ctx, storage.Commit{Key: key, Expect: storage.AnyRevision, Value: []byte("v"), TTL: time.Duration(who%2) * time.Hour})
		if errors.Is(err, storage.ErrClosed) {
			cancel()
			return
		}
		f, err := b.Watch(ctx, storage.WatchRange{Prefix: key, From: max(revisionOf(ctx, b), 0)})
		if err != nil {
			cancel()
			if errors.Is(err, storage.ErrClosed) {
				return
			}
			continue
		}
		var others sync.WaitGroup
		others.Go(func() {
			for range 20 {
				f.RequestProgress()
				time.Sleep(time.Millisecond)
			}
			if who%3 == 0 {
				f.Close()
			}
		})
		for at := int64(0); ; {
			c, err := f.Next(ctx)
			if err != nil {
				if !errors.Is(err, storage.ErrClosed) && !errors.Is(err, storage.ErrCompacted) && ctx.Err() == nil {
					t.Errorf("Next: %v", err)
				}
				break
			}
			if c.Progress < at {
				t.Errorf("progress %d after %d", c.Progress, at)
			}
			at = c.Progress
		}
		others.Wait()
		f.Close()
		cancel()
	}
}

func revisionOf(ctx context.Context, b storage.Backend) int64 {
	got, err := b.Get(ctx, "none", 0)
	if err != nil {
		return 0
	}
	return got.Revision
}
