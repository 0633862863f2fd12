package bolt_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// A commit waits for one transaction of expiring keys, not for all of them.
func TestManyKeysExpireAtOnce(t *testing.T) {
	t.Parallel()
	const n = 5*bolt.MostExpiring + 7
	everyMode(t, func(t *testing.T, o bolt.Options) {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.db")
			b := open(t, path, o)
			for i := range n {
				putFor(t, b, fmt.Sprintf("k%05d", i), "v", time.Hour+time.Duration(i%2)*500*time.Millisecond)
			}
			closed(t, b, path)
			start := int64(n + 1)
			g, most, gated := newGate(), 0, o.Sync != bolt.SyncInterval
			o.Hooks.Committed = func(changes int, _ time.Duration) { most = max(most, changes) }
			if gated {
				o = o.WithSyncing(g.sync)
			}
			time.Sleep(2 * time.Hour)
			b = open(t, path, o)
			done := make(chan int64, 1)
			if gated {
				<-g.reached
			}
			go func() { done <- put(t, b, "between", "v") }()
			synctest.Wait()
			close(g.open)
			at := <-done
			if gated && at != start+bolt.MostExpiring+1 {
				t.Errorf("a commit that came with the first of %d expired keys has revision %d, and the store was at %d", n, at, start)
			}
			wantKeys(t, b, "between")
			if got, want := revision(t, b), start+n+1; got != want {
				t.Errorf("the revision is %d after all, want %d", got, want)
			}
			closed(t, b, path)
			if gated && most > bolt.MostExpiring {
				t.Errorf("a transaction had %d changes, want at most %d", most, bolt.MostExpiring)
			}
		})
	})
}

// In every mode this number of keys expires in one step, and no more.
func TestKeysExpireInSteps(t *testing.T) {
	t.Parallel()
	const n = 3*bolt.MostExpiring + 7
	everyMode(t, func(t *testing.T, o bolt.Options) {
		synctest.Test(t, func(t *testing.T) {
			w := &wall{}
			var now *bolt.Backend
			var last, most int64
			watching := func() time.Time { // the writer calls it before each step
				if w.offset.Load() > 0 {
					r, _ := now.Known()
					last, most = r, max(most, r-last)
				}
				return w.now()
			}
			b := open(t, filepath.Join(t.TempDir(), "test.db"), o.WithWall(watching))
			for i := range n {
				putFor(t, b, fmt.Sprintf("k%05d", i), "v", time.Hour)
			}
			flush(t, b)
			now, last = b, revision(t, b)
			w.set(2 * time.Hour)
			put(t, b, "other", "v")
			wantKeys(t, b, "other")
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if most > bolt.MostExpiring+1 { // and the commit
				t.Errorf("%d changes in one step, want at most %d", most, bolt.MostExpiring)
			}
		})
	})
}

// Keys expire even if commits never stop.
func TestCommitsDoNotKeepKeysFromExpiring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *bolt.Backend
		var busy atomic.Bool
		var all sync.WaitGroup
		var flushes atomic.Int64
		b = open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{}.WithSyncing(func(int) error {
			if flushes.Add(1) > 200 || !busy.Load() {
				return nil
			}
			all.Go(func() { put(t, b, "busy", "v") })
			for b.Pending() == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		}))
		gone := watch(t, b, storage.WatchRange{Prefix: "a", From: putFor(t, b, "a", "1", time.Second)})
		time.Sleep(time.Second / 2)
		busy.Store(true)
		put(t, b, "busy", "v")
		before, err := gone.Next(t.Context())
		if err != nil || len(before.Changes) != 1 || !before.Changes[0].Deleted {
			t.Fatalf("Next = %+v, %v", before, err)
		}
		all.Wait()
		if r := revision(t, b); before.Changes[0].Revision > r-50 {
			t.Errorf("the key was deleted at revision %d, and with the last commit that was %d", before.Changes[0].Revision, r)
		}
	})
}

// Keys whose TTLs end in the same second are deleted in one transaction, not each in its own.
func TestExpiriesShareTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var transactions atomic.Int64
		b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{
			Hooks: bolt.Hooks{Committed: func(int, time.Duration) { transactions.Add(1) }},
		})
		for i := range 100 {
			putFor(t, b, fmt.Sprint(i), "v", time.Minute)
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		transactions.Store(0)
		time.Sleep(time.Minute + late)
		wantKeys(t, b, "")
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if n := transactions.Load(); n > 2 {
			t.Errorf("%d transactions delete what a second has brought, want at most 2", n)
		}
	})
}
