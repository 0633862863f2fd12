package etcd_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// An etcd that was restored to an older state has a longer history than was known before.
func TestOldestAfterARestore(t *testing.T) {
	m := &member{version: "3.7.3"} // at revision 7
	var gone atomic.Bool
	m.read = func(context.Context) error {
		if gone.Load() {
			return rpctypes.ErrGRPCCompacted
		}
		return nil
	}
	b, err := etcd.Open(t.Context(), etcd.Options{Endpoints: []string{m.serve(t, nil)}, CompactionInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Compact(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	if oldest, err := b.Oldest(t.Context()); err != nil || oldest != 5 {
		t.Errorf("Oldest = %d, %v; want 5, where it was compacted", oldest, err)
	}
	if err := b.Compact(t.Context(), 50); err != nil { // before the restore
		t.Fatal(err)
	}
	if oldest, err := b.Oldest(t.Context()); err != nil || oldest != 1 {
		t.Errorf("Oldest = %d, %v; want 1", oldest, err)
	}
	gone.Store(true)
	var expired *storage.ExpiredError
	if _, err := b.Get(t.Context(), "a", 3); !errors.As(err, &expired) || expired.Oldest != 0 {
		t.Errorf("Get: %v, want an ExpiredError that knows of no oldest revision", err)
	}
}
