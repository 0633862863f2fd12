package etcd

import (
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// A page of a range has about pageBytes. For each page etcd counts all remaining keys of the range, which takes longer than
// reading if there are many small pages. The number of keys of a page is estimated from the previous pages, and for the first
// page from earlier ranges. etcd limits the number of keys of a response, not its bytes. So a range without an estimate
// begins with few keys, which may have 1.5 MiB each.
const (
	pageBytes  = 16 << 20
	pageMin    = 4
	pageMax    = 10_000
	pageFirst  = 32 // without an estimate, a range of a thousand small values takes two pages, and later one
	pageGrowth = 32 // a page has at most this many times the keys seen so far
)

// sizing is an estimate of the values of an interval. The zero sizing is no estimate.
type sizing struct {
	size int64 // mean size of a key and its value in a page
	keys int64 // number of keys seen
}

// page returns how many keys the next page should have to have so many bytes.
func (s sizing) page(bytes int64) int64 {
	return min(max(bytes/max(s.size, 1), pageMin), pageMax, max(s.keys*pageGrowth, pageFirst))
}

// measured returns the sizing after a page. The page has at least one key; keys is the number of keys of the range so far.
func measured(page []*mvccpb.KeyValue, keys int) sizing {
	sum := 0
	for _, v := range page {
		sum += len(v.Key) + len(v.Value)
	}
	return sizing{int64(sum / len(page)), int64(keys)}
}

// sizes has the sizings of ranges by their upper bounds. These are the same for all pages of a client's list, and for the
// next list of the same objects.
type sizes struct {
	mu   sync.Mutex // guards byTo
	byTo map[string]sizing
}

// maxSizes is the maximum number of intervals that are remembered.
const maxSizes = 1024

func (s *sizes) of(to string) sizing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byTo[to]
}

// learn records the sizing of a range. Estimates of large values, and of many, decrease slowly.
func (s *sizes) learn(to string, seen sizing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byTo) >= maxSizes {
		clear(s.byTo)
	}
	old := s.byTo[to]
	s.byTo[to] = sizing{max(seen.size, old.size/2), max(seen.keys, old.keys/2)}
}
