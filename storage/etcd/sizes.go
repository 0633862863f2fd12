package etcd

import (
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// A page of a range has about pageBytes: an etcd counts all that is left of the range for each page, which for many small
// pages takes it longer than to read them. How many keys that is, is taken from the pages before, and for the first page
// from earlier ranges. An etcd bounds the keys of an answer, not its bytes: what is not known begins with few keys,
// which may be of 1.5 MiB each.
const (
	pageBytes  = 16 << 20
	pageMin    = 4
	pageMax    = 10_000
	pageFirst  = 32 // a range of a thousand small values takes two pages when nothing is known, and later one
	pageGrowth = 32 // at most so many times the keys that were seen
)

// sizing is what is known about the values of an interval. The zero sizing is nothing.
type sizing struct {
	size int64 // of a key and its value: the mean of a page
	keys int64 // that were seen
}

// page returns how many keys the next page should have, to be of so many bytes.
func (s sizing) page(bytes int64) int64 {
	return min(max(bytes/max(s.size, 1), pageMin), pageMax, max(s.keys*pageGrowth, pageFirst))
}

// measured returns the sizing after a page, which has a key at least, of a range that has brought so many.
func measured(page []*mvccpb.KeyValue, keys int) sizing {
	sum := 0
	for _, v := range page {
		sum += len(v.Key) + len(v.Value)
	}
	return sizing{int64(sum / len(page)), int64(keys)}
}

// sizes keeps the sizings of ranges by their upper bounds: these are the same for all pages of a client's list, and
// for the next list of the same objects.
type sizes struct {
	mu   sync.Mutex // guards byTo
	byTo map[string]sizing
}

// maxSizes bounds how many intervals are remembered.
const maxSizes = 1024

func (s *sizes) of(to string) sizing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byTo[to]
}

// learn notes what a range has seen: large values, and many, are forgotten slowly.
func (s *sizes) learn(to string, seen sizing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byTo) >= maxSizes {
		clear(s.byTo)
	}
	old := s.byTo[to]
	s.byTo[to] = sizing{max(seen.size, old.size/2), max(seen.keys, old.keys/2)}
}
