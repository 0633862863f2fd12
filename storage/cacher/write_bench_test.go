package cacher_test

import (
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
)

// BenchmarkUpdate changes random objects of 100,000: in the store alone, through a cache over it, and through a cache whose
// state is read after each write. B/op includes what the cache's own goroutine allocates.
func BenchmarkUpdate(b *testing.B) {
	objects := crowd{n: 100_000}
	crowded(b, objects, func(b *testing.B, s *storage.Store) {
		update := func(b *testing.B, s storage.Interface, then func(storage.Record)) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r, err := resize(b.Context(), s, objects.key(i*7919%objects.n))
				if err != nil {
					b.Fatal(err)
				}
				then(r)
			}
			if _, err := s.List(b.Context(), storage.ListOptions{Limit: 1}); err != nil { // a cache has caught up
				b.Fatal(err)
			}
		}
		reached := func(b *testing.B, c *cacher.Cacher, at storage.Read) {
			if _, err := c.List(b.Context(), storage.ListOptions{At: at, Limit: 1}); err != nil {
				b.Fatal(err)
			}
		}
		newCache(b, s, cacher.Options{}).Close() // the store has read everything once
		b.Run("store", func(b *testing.B) { update(b, s, func(storage.Record) {}) })
		c := newCache(b, s, cacher.Options{})
		defer c.Close()
		b.Run("cache", func(b *testing.B) { update(b, c, func(storage.Record) {}) })
		b.Run("cache, each state read", func(b *testing.B) {
			update(b, c, func(r storage.Record) {
				reached(b, c, storage.Read{Match: storage.NotOlderThan, Revision: r.Revision})
			})
		})
	})
}
