//go:build !race

package reader_test

import (
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/reader"
)

// TestAllocations: reads that policies make for every request allocate next to nothing.
func TestAllocations(t *testing.T) {
	g := cached(t, cacher.Options{}, reader.Options{})
	for i := range 100 {
		mustPut(t, g.cache, fmt.Sprintf("ns/%03d", i), "red")
	}
	ctx, since := t.Context(), g.changes(t, 0, runtime.Freshness{}).Revision
	for _, c := range []struct {
		what string
		most float64
		call func()
	}{
		{"Changed", 0, func() { g.Changed() }},
		{"Get", 1, func() { _, _ = g.Get(ctx, "ns", "050", runtime.Freshness{}) }},
		{"Changes with nothing new", 0, func() { _, _ = g.Changes(ctx, since, runtime.Freshness{}) }},
		{"Ready", 0, func() { _ = g.Ready(ctx) }},
	} {
		if n := testing.AllocsPerRun(200, c.call); n > c.most {
			t.Errorf("%s allocates %v times, want at most %v", c.what, n, c.most)
		}
	}
}
