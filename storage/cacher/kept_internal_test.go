package cacher

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/storage"
)

// TestPageKeeps checks what is kept with a page: it is the same for all readers, and is dropped when the page leaves.
func TestPageKeeps(t *testing.T) {
	t.Parallel()
	elements := benchmarkKeys(pageRoom)
	cache := storage.NewFormCache(1 << 20)
	latest := func() *edition { return &edition{forms: cache, left: kept{left: true}} }
	first := latest()
	tr := newTree(byKeyed)
	for _, e := range elements[:pageRoom-1] {
		tr.set(first, e)
	}
	state := tr
	p := state.root.page
	for range 2000 { // often enough for two goroutines to be the first
		p.drop()
		var ready atomic.Int32
		var got [2]*kept
		var readers sync.WaitGroup
		for i := range got {
			readers.Go(func() {
				ready.Add(1)
				for spins := 0; ready.Load() < 2; spins++ {
					if spins > 1000 {
						runtime.Gosched()
					}
				}
				got[i] = p.keeps()
			})
		}
		readers.Wait()
		if got[0] != got[1] || got[0].forms == nil {
			t.Fatalf("%+v and %+v", got[0], got[1])
		}
	}
	keep := func(p *page[keyed]) {
		if _, err := p.keeps().forms.Get(t.Context(), "form", func() ([]byte, error) { return []byte("form"), nil }); err != nil {
			t.Error(err)
		}
	}
	forms := func(want int64) {
		t.Helper()
		if got := cache.Stats().Forms; got != want {
			t.Errorf("%d forms, want %d", got, want)
		}
	}
	keep(p)
	forms(1)
	side := tr
	aside := new(edition)
	side.set(aside, elements[0])
	forms(1)
	if q := side.root.page; q == p || q.keeps().forms != nil {
		t.Error("a page on the side keeps forms")
	}
	tr.set(latest(), elements[0])
	forms(0)
	if q := tr.root.page; q == p || q.keeps() == p.keeps() || q.keeps().forms == nil {
		t.Error("a copy has what was kept with the page, or keeps nothing")
	}
	keep(p)
	forms(0)
	if !p.keeps().left {
		t.Error("a page that has left does not know it")
	}
	keep(tr.root.page)
	forms(1)
	tr.set(tr.root.owner, elements[pageRoom-1])
	forms(0)
	keep(tr.root.page)
	forms(1)
	for i, e := range elements {
		if tr.delete(latest(), e); i == 0 {
			forms(0)
			keep(tr.root.page)
		}
	}
	forms(0)
	tree[keyed]{}.leave(latest())
}
