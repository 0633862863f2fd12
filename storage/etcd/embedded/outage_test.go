package embedded_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
)

// TestAnOutage: while etcd is unavailable, every request fails with the cause, long before its own timeout, and everything
// works again when etcd is back. RequestTimeout and RangeTimeout are longer than the test.
func TestAnOutage(t *testing.T) { // not parallel: another test could be given its port
	dir := t.TempDir()
	s := start(t, embedded.Options{Dir: dir})
	listen := address(t, s.Endpoints()[0])
	b := open(t, etcd.Options{Endpoints: s.Endpoints(), RequestTimeout: time.Hour, RangeTimeout: time.Hour})
	ctx := bounded(t)
	res, err := b.Commit(ctx, storage.Commit{Key: "a", Value: []byte("1")})
	if err != nil {
		t.Fatal(err)
	}
	f, err := b.Watch(ctx, storage.WatchRange{From: res.Revision})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	calls := map[string]func(context.Context) error{
		"Get":   func(ctx context.Context) error { _, err := b.Get(ctx, "a", 0); return err },
		"Range": func(ctx context.Context) error { _, err := b.Range(ctx, storage.Range{}); return err },
		"Commit": func(ctx context.Context) error {
			_, err := b.Commit(ctx, storage.Commit{Key: "b", Expect: storage.AnyRevision, Value: []byte("1")})
			return err
		},
		"Watch": func(ctx context.Context) error {
			f, err := b.Watch(ctx, storage.WatchRange{})
			if err == nil {
				f.Close()
			}
			return err
		},
		"Health": b.Health,
		"Ready":  b.Ready,
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for name, call := range calls {
		all.Go(func() {
			if err := call(ctx); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") {
				t.Errorf("%s: %v, want ErrUnavailable and why", name, err)
			}
		})
	}
	all.Wait()
	start(t, embedded.Options{Dir: dir, ListenClient: listen, UnsafeNoFsync: true})
	ctx = bounded(t)
	for name, call := range calls {
		for err = call(ctx); errors.Is(err, storage.ErrUnavailable) && ctx.Err() == nil; err = call(ctx) { // for a moment
		}
		if err != nil {
			t.Errorf("%s, afterwards: %v", name, err)
		}
	}
	got, err := f.Next(ctx)
	if err != nil || len(got.Changes) != 1 || got.Changes[0].Key != "b" {
		t.Errorf("Next: %+v, %v", got, err)
	}
}
