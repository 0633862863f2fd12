package cacher

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/storage"
)

// TestTreeEmptied removes most of a large tree in several ways; the rest must have few pages (checkTree).
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

// TestTreeCopies counts the allocations of writes: none in an edition that owns the nodes, one path after an edition has
// ended.
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

// TestTreeReaders reads states, and keeps forms of their pages, while editions continue.
func TestTreeReaders(t *testing.T) {
	t.Parallel()
	elements := benchmarkKeys(3000)
	forms := storage.NewFormCache(100 << 10)
	tr := build(byKeyed, &edition{forms: forms}, slices.Values(elements))
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
					joined := func() ([]byte, error) { return joinKeys(items), nil }
					if kept, err := p.keeps().forms.Get(t.Context(), "joined", joined); err != nil || !bytes.Equal(kept, joinKeys(items)) {
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
		ed := &edition{forms: forms, left: kept{left: true}}
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
	if st := forms.Stats(); st.Hits == 0 {
		t.Errorf("nothing was tested: %+v", st)
	}
	tr.leave(&edition{forms: forms, left: kept{left: true}})
	if st := forms.Stats(); st.Bytes != 0 || st.Forms != 0 {
		t.Errorf("left is %+v", st)
	}
}

func joinKeys(items []*keyed) (out []byte) {
	for _, e := range items {
		out = fmt.Appendf(out, "%s=%d,", e.key, e.version)
	}
	return out
}
