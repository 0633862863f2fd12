package embedded_test

import (
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	"github.com/keelson-dev/keelson/storage/storagetest"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A feed without changes receives progress by etcd's progress notifications. When history was compacted and its connection is
// lost, it continues from there.
func TestAnIdleFeedDoesNotExpire(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Options{ProgressInterval: 100 * time.Millisecond})
	c, p := rawOf(t, s), storagetest.NewProxy(t, address(t, s.Endpoints()[0]))
	b := open(t, etcd.Options{Endpoints: []string{p.Addr()}, CompactionInterval: -1})
	ctx := bounded(t)
	f, err := b.Watch(ctx, storage.WatchRange{Prefix: "quiet/", From: revision(t, b)})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := mustCommit(t, b, storage.Commit{Key: "quiet/a", Value: []byte("v")})
	if got, err := f.Next(ctx); err != nil || got.Progress < want {
		t.Fatalf("Next: %+v, %v", got, err)
	}
	now := int64(0)
	for range 20 {
		now = mustPut(t, c, "busy", "v")
	}
	// The other watch has received as many notifications as the feed's, give or take one.
	other := c.Watch(ctx, "quiet/", clientv3.WithPrefix(), clientv3.WithProgressNotify())
	for n := 0; n < 5; {
		r, ok := <-other
		if !ok || r.Err() != nil {
			t.Fatalf("the other watch: %v", r.Err())
		}
		if r.IsProgressNotify() && r.Header.Revision >= now {
			n++
		}
	}
	if _, err := c.Compact(ctx, now, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	want = mustPut(t, c, "quiet/a", "w")
	got, err := f.Next(ctx)
	if err != nil || len(got.Changes) != 1 || got.Changes[0].Revision != want {
		t.Fatalf("Next: %+v, %v; want the change of revision %d", got, err, want)
	}
}
