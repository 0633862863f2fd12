package etcd_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// holding makes a member with so many values of a size, under the keys k/0000 and on. It returns the number of keys of each
// page that was requested.
func holding(count, size int) (*member, *[]int64) {
	var pages []int64
	m := &member{}
	m.ranged = func(r *pb.RangeRequest) *pb.RangeResponse {
		res := &pb.RangeResponse{}
		for i := range count {
			key := fmt.Appendf(nil, "k/%04d", i)
			switch {
			case string(key) < string(r.Key) || string(key) >= string(r.RangeEnd):
				continue
			case r.Limit > 0 && int64(len(res.Kvs)) == r.Limit:
				res.More = true
			case !r.CountOnly:
				res.Kvs = append(res.Kvs, &mvccpb.KeyValue{Key: key, Value: make([]byte, size), ModRevision: 5})
			}
			res.Count++
		}
		pages = append(pages, int64(len(res.Kvs)))
		return res
	}
	return m, &pages
}

// list reads a range, which must have so many values, and returns the pages it came in.
func list(t *testing.T, b storage.Backend, pages *[]int64, r storage.Range, want int) []int64 {
	t.Helper()
	*pages = nil
	res, err := b.Range(t.Context(), r)
	if err != nil || len(res.KVs) != want {
		t.Fatalf("%d values, %v; want %d", len(res.KVs), err, want)
	}
	return *pages
}

func TestRangesOfManySmallValues(t *testing.T) {
	m, pages := holding(1000, 100)
	b := opened(t, m, etcd.Options{})
	all := storage.Range{From: "k/", To: "k0"}
	if got := list(t, b, pages, all, 1000); len(got) > 2 {
		t.Errorf("1000 small values came in pages of %v, want at most two", got)
	}
	if got := list(t, b, pages, all, 1000); len(got) != 1 {
		t.Errorf("the second time they came in pages of %v, want one", got)
	}
	if got := list(t, b, pages, storage.Range{From: "k/0500", To: "k0", Limit: 400}, 400); len(got) != 1 {
		t.Errorf("400 of them came in pages of %v, want one", got)
	}
}

// A page of a thousand large values would be too large.
func TestRangesOfLargeValues(t *testing.T) {
	const size = 256 << 10
	m, pages := holding(300, size)
	b := opened(t, m, etcd.Options{})
	all := storage.Range{From: "k/", To: "k0"}
	got := list(t, b, pages, all, 300)
	if most := slices.Max(got); most > 64 {
		t.Errorf("pages of %v values, want at most 64, which are 16 MiB", got)
	}
	if got[0] > 32 {
		t.Errorf("the first page has %d values of a size that is not known, want at most 32", got[0])
	}
	if got := list(t, b, pages, all, 300); slices.Max(got) > 64 {
		t.Errorf("the second time pages of %v", got)
	}
	// The estimate for one interval is not used for another.
	if got := list(t, b, pages, storage.Range{From: "k/", To: "k/02"}, 200); got[0] > 32 {
		t.Errorf("another interval begins with %d values", got[0])
	}
}
