package cacher

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// TestTreeEmptied leaves little of a large tree in several ways; what is left has few pages (checkTree).
func TestTreeEmptied(t *testing.T) {
	t.Parallel()
	const n = 20_000
	for name, place := range map[string]func(i int) int{
		"random": func() func(int) int { p := rand.Perm(n); return func(i int) int { return p[i] } }(),
		"first":  func(i int) int { return i },
		"last":   func(i int) int { return n - 1 - i },
		"spread": func(i int) int { return i * 7919 % n },
	} {
		t.Run(name, func(t *testing.T) {
			elements := benchmarkKeys(n)
			tr, ed := randomTree(elements), new(edition)
			for i := range n {
				e := elements[place(i)]
				if tr.delete(ed, e) != e {
					t.Fatal(e)
				}
				if left := n - 1 - i; left%997 == 0 || left < 100 {
					checkTree(t, tr)
				}
			}
			if tr.root != nil {
				t.Fatal(tr.len())
			}
		})
	}
}

// TestTreeCopies counts what writes allocate: nothing in an edition that owns the nodes, one path after it.
func TestTreeCopies(t *testing.T) {
	elements := benchmarkKeys(20_000)
	ed := new(edition)
	tr := build(byKeyed, ed, slices.Values(elements))
	i := 0
	set := func() {
		i = (i + 7919) % len(elements)
		tr.set(ed, elements[i])
	}
	if n := testing.AllocsPerRun(100, set); n != 0 {
		t.Errorf("%v allocations to replace an element in an edition", n)
	}
	height := 0.0
	for n := tr.root; n.page == nil; n = n.branch.kids[0] {
		height++
	}
	if n := testing.AllocsPerRun(100, func() { ed = new(edition); set() }); n > height+2 {
		t.Errorf("%v allocations to replace an element of a state, want those of %v nodes and an edition", n, height+1)
	}
	before := tr
	if n := testing.AllocsPerRun(100, func() { tr.delete(ed, &keyed{key: "none"}) }); n > 1 || tr.root != before.root {
		t.Errorf("%v allocations to delete nothing", n)
	}
	if strconv.IntSize == 64 {
		for _, kind := range []reflect.Type{reflect.TypeFor[page[keyed]](), reflect.TypeFor[branch[keyed]]()} {
			if kind.Size() != 256 {
				t.Errorf("%v has %d bytes", kind, kind.Size())
			}
		}
	}
}

// TestTreeFill counts the nodes of trees that grew in different orders.
func TestTreeFill(t *testing.T) {
	t.Parallel()
	elements := benchmarkKeys(20_000)
	inOrder := newTree(byKeyed)
	for _, e := range elements {
		inOrder.set(new(edition), e)
	}
	for name, tr := range map[string]tree[keyed]{
		"random":   randomTree(elements),
		"in order": inOrder,
		"build":    build(byKeyed, new(edition), slices.Values(elements)),
	} {
		const nodeBytes, most = 256, 13
		if n := len(copyNodes(tr.root, nil)); n*nodeBytes > most*len(elements) {
			t.Errorf("%s: %d nodes for %d elements, want at most %d bytes for each", name, n, len(elements), most)
		}
	}
}

// TestTreeReaders reads states, and makes things of their pages, while editions go on.
func TestTreeReaders(t *testing.T) {
	t.Parallel()
	elements := benchmarkKeys(3000)
	tr := build(byKeyed, new(edition), slices.Values(elements))
	var state atomic.Pointer[tree[keyed]]
	first := tr
	state.Store(&first)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			var before tree[keyed]
			for last := false; !last; {
				select {
				case <-done:
					last = true
				default:
				}
				now := *state.Load()
				checkTree(t, now)
				n := 0
				now.pages(0, now.len(), func(p *page[keyed], items []*keyed) bool {
					n += len(items)
					if kept := p.keep(joinKeys); !bytes.Equal(kept.([]byte), joinKeys(items).([]byte)) {
						t.Error("what was kept is another page's")
					}
					return true
				})
				if n != now.len() {
					t.Errorf("%d elements in pages of %d", n, now.len())
				}
				if before.root != nil {
					diff(before, now, func(was, is *keyed) bool { return was != is })
				}
				before = now
			}
		})
	}
	r := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		ed := new(edition)
		for range 1 + r.IntN(20) {
			e := *elements[r.IntN(len(elements))]
			if r.IntN(3) == 0 {
				tr.delete(ed, &e)
			} else {
				tr.set(ed, &e)
			}
		}
		now := tr
		state.Store(&now)
	}
	close(done)
	readers.Wait()
}

func joinKeys(items []*keyed) any {
	var out []byte
	for _, e := range items {
		out = fmt.Appendf(out, "%s=%d,", e.key, e.version)
	}
	return out
}

// TestPageKeep follows what is made from a page.
func TestPageKeep(t *testing.T) {
	t.Parallel()
	elements := benchmarkKeys(pageRoom)
	ed := new(edition)
	tr := newTree(byKeyed)
	for _, e := range elements[:pageRoom-1] {
		tr.set(ed, e)
	}
	state := tr
	p := state.root.page
	makes := 0
	value := func(items []*keyed) any {
		if len(items) != cap(items) {
			t.Error("room behind the items")
		}
		makes++
		return &makes
	}
	for range 2000 { // often enough for two to be the first
		p.drop()
		makes = 0
		var ready atomic.Int32
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				ready.Add(1)
				for spins := 0; ready.Load() < 2; spins++ {
					if spins > 1000 {
						runtime.Gosched()
					}
				}
				if p.keep(value) != any(&makes) {
					t.Error("not what was made")
				}
			})
		}
		readers.Wait()
		if makes != 1 {
			t.Fatalf("made %d times", makes)
		}
	}
	tr.set(new(edition), elements[0])
	if q := tr.root.page; q == p || q.drop() {
		t.Error("a copy has what was made from the page")
	}
	if !p.drop() || p.drop() {
		t.Error("dropped not once")
	}
	p.keep(value)
	state.set(ed, elements[pageRoom-1])
	if state.root.page != p || p.drop() || makes != 2 {
		t.Errorf("a page that changed in place has what was made before; made %d times", makes)
	}
	if v := p.keep(func(items []*keyed) any { return len(items) }); v != pageRoom {
		t.Errorf("made from %v elements", v)
	}
	p.drop()
	p.keep(func([]*keyed) any { return nil })
	if p.keep(value); makes != 3 {
		t.Error("nil was kept")
	}
	p.drop()
	func() {
		defer func() { recover() }()
		p.keep(func([]*keyed) any { panic("refused") })
	}()
	if p.keep(value); makes != 4 {
		t.Error("a maker that panicked was the last")
	}
}
