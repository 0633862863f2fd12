package etcd_test

import (
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Stat is a linearizable read of one key without its value.
func TestStatTransfersNoValue(t *testing.T) {
	m := &member{version: "3.7.3"} // at revision 7
	var last atomic.Pointer[pb.RangeRequest]
	m.ranged = func(r *pb.RangeRequest) *pb.RangeResponse {
		last.Store(r)
		return &pb.RangeResponse{Kvs: []*mvccpb.KeyValue{{Key: r.Key, ModRevision: 4}}, Count: 1}
	}
	b, err := etcd.Open(t.Context(), etcd.Options{Endpoints: []string{m.serve(t, nil)}, CompactionInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got, err := b.Stat(t.Context(), "a"); err != nil || got != (storage.Stat{Revision: 4, At: 7}) {
		t.Errorf("Stat = %+v, %v", got, err)
	}
	if r := last.Load(); string(r.Key) != "a" || len(r.RangeEnd) > 0 || !r.KeysOnly || r.Serializable || r.Revision != 0 {
		t.Errorf("etcd was asked %v", r)
	}
	for _, key := range []string{"", "a\x00", "compact_rev_key"} {
		if got, err := b.Stat(t.Context(), key); err == nil {
			t.Errorf("Stat(%q) = %+v, want an error", key, got)
		}
	}
}
