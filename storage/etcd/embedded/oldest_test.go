package embedded_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Another client compacts: the oldest revision is found with a few requests, and then remembered.
func TestOldestOfAForeignCompaction(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Options{})
	client := raw(t, clientv3.Config{Endpoints: s.Endpoints()})
	ctx := bounded(t)
	var requests atomic.Int64
	b := open(t, etcd.Options{Endpoints: s.Endpoints(), CompactionInterval: -1, Hooks: etcd.Hooks{
		Requested: func(string, time.Duration, error) { requests.Add(1) },
	}})
	oldest := func(want, most int64) {
		t.Helper()
		requests.Store(0)
		got, err := b.Oldest(ctx)
		if n := requests.Load(); err != nil || got != want || n > most {
			t.Errorf("Oldest = %d, %v after %d requests; want %d after at most %d", got, err, n, want, most)
		}
	}
	oldest(1, 2)
	for i := range 500 {
		mustCommit(t, b, storage.Commit{Key: fmt.Sprint("k", i%3), Expect: storage.AnyRevision})
	}
	oldest(1, 2)
	now := revision(t, b)
	for _, at := range []int64{2, 3, 200, now - 1, now} {
		if _, err := client.Compact(ctx, at); err != nil {
			t.Fatal(err)
		}
		oldest(at, 11)
		oldest(at, 2)
	}
}
