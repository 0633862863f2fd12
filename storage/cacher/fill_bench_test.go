package cacher_test

import (
	"context"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
)

// BenchmarkFill fills a cache with the 100,000 objects of a store that has not read them before.
func BenchmarkFill(b *testing.B) {
	for _, name := range benchBackends {
		b.Run(name, func(b *testing.B) {
			backend := openBackend(b, name, b.TempDir())
			defer backend.Close()
			objects := crowd{n: 100_000}
			objects.loadInto(b, backend)
			b.ReportAllocs()
			for b.Loop() {
				newCache(b, benchStore(b, backend), cacher.Options{}).Close()
			}
			b.ReportMetric(float64(objects.n)*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
		})
	}
}

// writeOn changes objects at full speed until stop is called.
func writeOn(b *testing.B, s storage.Interface, objects crowd) (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	var done sync.WaitGroup
	writes := 0
	done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if _, err := resize(ctx, s, objects.key(i*7919%objects.n)); err != nil && ctx.Err() == nil {
				b.Error(err)
				return
			}
			writes++
		}
	})
	return func() {
		cancel()
		done.Wait()
		b.ReportMetric(float64(writes)/b.Elapsed().Seconds(), "writes/s")
	}
}

// BenchmarkHistory reads while one writer changes objects of 100,000 at full speed. It reads pages of 500 through all of
// them, each list at one state, and the first object of states that are between 1 and 2,000 writes old.
func BenchmarkHistory(b *testing.B) {
	objects := crowd{n: 100_000}
	crowded(b, objects, func(b *testing.B, s *storage.Store) {
		c := newCache(b, s, cacher.Options{})
		defer c.Close()
		b.Run("all by pages", func(b *testing.B) {
			stop := writeOn(b, c, objects)
			for b.Loop() {
				readPages(b, c, objects.n)
			}
			stop()
		})
		b.Run("older states", func(b *testing.B) {
			stop := writeOn(b, c, objects)
			for i := 0; b.Loop(); i++ {
				now := c.Stats().Revision
				at := max(now-int64(i*37%2000), c.Stats().Oldest)
				readAt(b, c, at)
			}
			stop()
		})
	})
}

// readPages lists all objects in pages of 500, and checks that it finds each one once.
func readPages(b *testing.B, c *cacher.Cacher, n int) {
	opts := storage.ListOptions{Limit: 500}
	count, revision := 0, int64(0)
	for {
		page, err := c.List(b.Context(), opts)
		if err != nil {
			b.Fatal(err)
		}
		if revision == 0 {
			revision = page.Revision
		}
		for range page.Records {
			count++
		}
		if page.Revision != revision {
			b.Fatalf("a page at %d, the first at %d", page.Revision, revision)
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			break
		}
	}
	if count != n {
		b.Fatalf("%d objects, want %d", count, n)
	}
}

func readAt(b *testing.B, c *cacher.Cacher, revision int64) {
	page, err := c.List(b.Context(), storage.ListOptions{Limit: 1, At: storage.Read{Match: storage.Exact, Revision: revision}})
	if err != nil || page.Count != 1 || page.Revision != revision {
		b.Fatal(page.Count, page.Revision, err)
	}
}
