package reader_test

import (
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/reader"
)

// benched returns a reader of 10,000 objects that are decoded.
func benched(b *testing.B) *gadgets {
	g := cached(b, cacher.Options{}, reader.Options{})
	for i := range 10_000 {
		mustPut(b, g.cache, fmt.Sprintf("ns/%05d", i), "red")
	}
	g.list(b, runtime.Query{})
	return g
}

func BenchmarkChanged(b *testing.B) {
	g := benched(b)
	b.ReportAllocs()
	for b.Loop() {
		if g.Changed().Revision == 0 {
			b.Fatal("it is not filled")
		}
	}
}

func BenchmarkGet(b *testing.B) {
	g := benched(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Get(b.Context(), "ns", "05000", runtime.Freshness{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChanges calls Changes after no change, and after changes of one and of many objects.
func BenchmarkChanges(b *testing.B) {
	for _, n := range []int{0, 1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := benched(b)
			since := g.changes(b, 0, runtime.Freshness{}).Revision
			for i := range n {
				mustPut(b, g.cache, fmt.Sprintf("ns/%05d", i), "blue")
			}
			g.changes(b, since, runtime.Freshness{})
			b.ReportAllocs()
			for b.Loop() {
				if c, err := g.Changes(b.Context(), since, runtime.Freshness{}); err != nil || len(c.All) != n {
					b.Fatalf("%d changes, %v", len(c.All), err)
				}
			}
		})
	}
}

func BenchmarkList(b *testing.B) {
	g := benched(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.List(b.Context(), runtime.Query{}); err != nil {
			b.Fatal(err)
		}
	}
}
