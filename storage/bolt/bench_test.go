package bolt_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

func BenchmarkCreate(b *testing.B) {
	value := strings.Repeat("v", 1000)
	for _, mode := range []struct {
		name string
		sync bolt.Sync
	}{{"always", bolt.SyncAlways}, {"interval", bolt.SyncInterval}, {"never", bolt.NoSync}} {
		for _, creators := range []int{1, 64} {
			b.Run(fmt.Sprint(mode.name, "/", creators), func(b *testing.B) {
				s := open(b, filepath.Join(b.TempDir(), "test.db"), bolt.Options{Sync: mode.sync})
				b.ResetTimer()
				var all sync.WaitGroup
				for c := range creators {
					all.Go(func() {
						for i := c; i < b.N; i += creators {
							if _, err := s.Commit(b.Context(), create(fmt.Sprint("/registry/widgets/", i), value)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
			})
		}
	}
}

// BenchmarkFreePages commits to a file with 100,000 free pages that are not neighbours, and to a file with the same content
// and no free pages.
func BenchmarkFreePages(b *testing.B) {
	const keys = 200_000
	value := []byte(strings.Repeat("v", 3000)) // a page each
	for _, free := range []bool{false, true} {
		b.Run(fmt.Sprint("free=", free), func(b *testing.B) {
			tidied := make(chan int64, keys)
			s := open(b, filepath.Join(b.TempDir(), "test.db"), bolt.Options{
				Sync: bolt.NoSync, WindowChanges: 1,
				Hooks: bolt.Hooks{Compacted: func(revision int64, _ int) {
					select {
					case tidied <- revision:
					default:
					}
				}},
			})
			step := 1
			if !free {
				step = 2
			}
			err := s.Load(b.Context(), keys+2, func(yield func(storage.KV, error) bool) {
				for i := 0; i < keys; i += step {
					if !yield(storage.KV{Key: fmt.Sprintf("k%06d", i), Value: value, Revision: int64(i + 2)}, nil) {
						return
					}
				}
			})
			if err != nil {
				b.Fatal(err)
			}
			if free {
				deleteOdd(b, s, keys)
				for now := int64(keys + 2 + keys/2); <-tidied < now-1; {
				}
			}
			b.ResetTimer()
			for i := range b.N {
				c := storage.Commit{Key: fmt.Sprintf("k%06d", i*2%keys), Expect: storage.AnyRevision, Value: value}
				if _, err := s.Commit(b.Context(), c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func deleteOdd(b *testing.B, s *bolt.Backend, keys int) {
	const writers = 64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := 2*w + 1; i < keys; i += 2 * writers {
				c := storage.Commit{Key: fmt.Sprintf("k%06d", i), Expect: storage.AnyRevision, Delete: true}
				if _, err := s.Commit(b.Context(), c); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkLoad loads a million small values whose revisions are in random order.
func BenchmarkLoad(b *testing.B) {
	const n = 1_000_000
	kvs, last := values(n, 200)
	for range b.N {
		s := open(b, filepath.Join(b.TempDir(), "test.db"), bolt.Options{})
		if err := s.Load(b.Context(), last, kvs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "values/s")
}

func BenchmarkRead(b *testing.B) {
	const keys = 10_000
	s := open(b, filepath.Join(b.TempDir(), "test.db"), bolt.Options{})
	putAll(b, s, keys, strings.Repeat("v", 1000))
	b.Run("get", func(b *testing.B) {
		for i := range b.N {
			if _, err := s.Get(b.Context(), fmt.Sprintf("k%05d", i%keys), 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, r := range map[string]storage.Range{
		"range of 10000":      {},
		"page of 500":         {Limit: 500},
		"count of 10000 keys": {CountOnly: true},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if res, err := s.Range(b.Context(), r); err != nil || res.Count != keys {
					b.Fatal(res.Count, err)
				}
			}
		})
	}
}
