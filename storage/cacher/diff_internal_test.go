package cacher

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTreeDiffCost records which elements a diff reads: of a subtree that both trees share, only the first one.
func TestTreeDiffCost(t *testing.T) {
	t.Parallel()
	const n = 1200 // enough for a third level
	elements := benchmarkKeys(n)
	mark, marked := 0, 0 // an element whose version is mark must not be read
	compare := func(a, b *keyed) int {
		if mark > 0 && (a.version == mark || b.version == mark) {
			t.Fatalf("diff looked at %v and %v", a, b)
		}
		return byKeyed(a, b)
	}
	looked := func(a, b tree[keyed]) {
		have := map[*node[keyed]]bool{}
		var collect func(n *node[keyed])
		collect = func(n *node[keyed]) {
			have[n] = true
			if n.page == nil {
				for _, kid := range n.branch.used() {
					collect(kid)
				}
			}
		}
		if a.root != nil {
			collect(a.root)
		}
		marked++
		var hide func(n *node[keyed])
		hide = func(n *node[keyed]) {
			switch {
			case n == nil:
			case have[n]:
				shared := tree[keyed]{root: n}
				shared.walk(1, shared.len(), func(e *keyed) bool { e.version = marked; return true })
			case n.page == nil:
				for _, kid := range n.branch.used() {
					hide(kid)
				}
			}
		}
		hide(b.root)
		mark = marked
		diff(a, b, func(_, _ *keyed) bool { return true })
		diff(b, a, func(_, _ *keyed) bool { return true })
		mark = 0
	}
	r := rand.New(rand.NewPCG(3, 3))
	for name, order := range map[string][]int{"in order": slices.Sorted(slices.Values(r.Perm(n))), "random": r.Perm(n)} {
		t.Run(name, func(t *testing.T) {
			tr := newTree(compare)
			for _, remove := range []bool{false, true} {
				before := tr
				for i, at := range order {
					last := tr
					if remove {
						tr.delete(new(edition), elements[at])
					} else {
						tr.set(new(edition), elements[at])
					}
					looked(last, tr)
					if i%50 == 0 {
						looked(before, tr)
						before = tr
					}
				}
			}
		})
	}
}
