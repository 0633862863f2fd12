package storage_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/memory"
)

// filled calls run with a func that opens a store of n gadgets of about 1.8 KiB, on each backend. bytes is the size of all
// objects.
func filled(b *testing.B, n int, run func(b *testing.B, open func() *storage.Store, bytes int)) {
	o := gadgetOptions(b)
	for name, open := range map[string]func(b *testing.B) storage.Backend{
		"memory": func(*testing.B) storage.Backend { return memory.New(memory.Options{}) },
		"bolt": func(b *testing.B) storage.Backend {
			backend, err := bolt.Open(filepath.Join(b.TempDir(), "test.db"), bolt.Options{})
			if err != nil {
				b.Fatal(err)
			}
			return backend
		},
	} {
		b.Run(name, func(b *testing.B) {
			backend := open(b)
			b.Cleanup(func() { backend.Close() })
			bytes := 0
			err := backend.(storage.Loader).Load(b.Context(), int64(n+1), func(yield func(storage.KV, error) bool) {
				for i := range n {
					g := gadget(fmt.Sprintf("ns%d/k%06d", i*10/n, i))
					g.Annotations = map[string]string{"text": strings.Repeat("x", 1600)}
					body, err := o.Codec.Encode(g)
					kv := storage.KV{Key: o.Prefix + "/" + g.Namespace + "/" + g.Name, Value: body.Bytes(), Revision: int64(i + 1)}
					bytes += len(kv.Value)
					if !yield(kv, err) {
						return
					}
				}
			})
			if err != nil {
				b.Fatal(err)
			}
			run(b, func() *storage.Store { return newStore(b, backend, o) }, bytes)
		})
	}
}

// BenchmarkStat reads the revision of one of 10,000 keys, and of the store.
func BenchmarkStat(b *testing.B) {
	filled(b, 10_000, func(b *testing.B, open func() *storage.Store, _ int) {
		s := open()
		b.Run("stat", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if now, err := s.Stat(b.Context(), "ns5/k005000"); err != nil || now.Revision == 0 {
					b.Fatal(now, err)
				}
			}
		})
		b.Run("revision", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Revision(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

// BenchmarkState reads 100,000 objects. In the first state that a store reads, every value passes through the codec. In later
// states values that are known to be canonical do not. objectB is the size of the objects, which bolt allocates too.
func BenchmarkState(b *testing.B) {
	const n = 100_000
	filled(b, n, func(b *testing.B, open func() *storage.Store, bytes int) {
		s := open()
		for _, name := range []string{"first", "later"} {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if name == "first" {
						s = open()
					}
					readAll(b, s, n)
				}
				b.ReportMetric(float64(bytes), "objectB/op")
			})
		}
	})
}

func readAll(b *testing.B, s *storage.Store, n int) {
	b.Helper()
	state, err := s.State(b.Context(), 0)
	if err != nil {
		b.Fatal(err)
	}
	count := 0
	for e, err := range state.Entries {
		if err != nil || e.Unreadable != nil {
			b.Fatal(err, e.Unreadable)
		}
		count++
	}
	if count != n {
		b.Fatal(count)
	}
}
