package etcd_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage/etcd"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// With authentication etcd lets few users compact. A server with another user must not take their turns, and reports the
// error.
func TestCompactionThatIsDenied(t *testing.T) {
	m := &member{version: "3.7.3"}
	var denied atomic.Bool
	denied.Store(true)
	m.compact = func() error {
		if denied.Load() {
			return rpctypes.ErrGRPCPermissionDenied
		}
		return nil
	}
	reported := make(chan error)
	over := make(chan struct{})
	b, err := etcd.Open(t.Context(), etcd.Options{
		Endpoints: []string{m.serve(t, nil)}, CompactionInterval: time.Millisecond,
		Hooks: etcd.Hooks{Compacted: func(_ int64, err error) {
			select {
			case reported <- err:
			case <-over:
			}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	defer close(over)
	for range 5 {
		if err := <-reported; err == nil || !strings.Contains(err.Error(), "role root") || !strings.Contains(err.Error(), "CompactionInterval") {
			t.Fatalf("%v, want the reason and what to do", err)
		}
	}
	if n := m.writes.Load(); n > 2 {
		t.Errorf("it took %d turns, want those until the first refusal, two", n)
	}
	denied.Store(false)
	for range 20 { // some refusals may still be coming
		if err = <-reported; err == nil {
			return
		}
	}
	t.Errorf("it does not go on when it may: %v", err)
}
