package memory_test

import (
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
)

// BenchmarkCommitWatched writes while there are a thousand feeds of other prefixes.
func BenchmarkCommitWatched(b *testing.B) {
	m := memory.New(memory.Options{})
	defer m.Close()
	for i := range 1000 {
		if _, err := m.Watch(b.Context(), storage.WatchRange{Prefix: fmt.Sprintf("/other/%d/", i), From: 1}); err != nil {
			b.Fatal(err)
		}
	}
	value := make([]byte, 1000)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		c := storage.Commit{Key: fmt.Sprint("/k/", i%1000), Expect: storage.AnyRevision, Value: value}
		if _, err := m.Commit(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPage reads a page of 500 from the middle of 100,000 keys, with the count of all.
func BenchmarkPage(b *testing.B) {
	m := memory.New(memory.Options{})
	defer m.Close()
	for i := range 100_000 {
		c := storage.Commit{Key: fmt.Sprintf("/k/%06d", i), Value: []byte("v")}
		if _, err := m.Commit(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		res, err := m.Range(b.Context(), storage.Range{From: "/k/050000", To: "/k0", Limit: 500})
		if err != nil || res.Count != 50_000 {
			b.Fatal(res.Count, err)
		}
	}
}
