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
	for _, creators := range []int{1, 64} {
		b.Run(fmt.Sprint(creators), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "test.db"), bolt.Options{})
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
