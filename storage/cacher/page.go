package cacher

import "sync/atomic"

// A page and a branch have 256 bytes each where pointers have 8, a size class of the allocator. What the first write to a
// state copies is one page and the branches above it: 1 KiB of a tree of 100,000 elements. Longer pages cost more for
// each write and save little: 1 byte of 12 for an element at twice the length.
const (
	pageRoom   = 27 // elements of a page
	branchRoom = 26 // nodes below a branch
)

// node is the root of a subtree: of a page, or of a branch.
type node[E any] struct {
	owner  *edition
	page   *page[E]   // whose node this is; nil for a branch's
	branch *branch[E] // whose node this is; nil for a page's
	size   int        // elements in the subtree
}

// page is a run of neighbouring elements. One that belongs to a state never changes, but for what readers keep with it.
type page[E any] struct {
	node  node[E]
	kept  atomic.Pointer[kept]
	items [pageRoom]*E // the first node.size are used
}

// branch is a run of neighbouring subtrees, which are all of one height.
type branch[E any] struct {
	node  node[E]
	first *E // of the subtree
	n     int
	kids  [branchRoom]*node[E] // the first n are used
}

func newPage[E any](ed *edition) *page[E] {
	p := &page[E]{node: node[E]{owner: ed}}
	p.node.page = p
	return p
}

func newBranch[E any](ed *edition) *branch[E] {
	b := &branch[E]{node: node[E]{owner: ed}}
	b.node.branch = b
	return b
}

func (p *page[E]) len() int { return p.node.size }

func (p *page[E]) used() []*E { return p.items[:p.node.size:p.node.size] }

func (b *branch[E]) used() []*node[E] { return b.kids[:b.n] }

func (n *node[E]) first() *E {
	if n.page != nil {
		return n.page.items[0]
	}
	return n.branch.first
}

// fill is how much of its room a node uses.
func (n *node[E]) fill() (used, room int) {
	if n.page != nil {
		return n.size, pageRoom
	}
	return n.branch.n, branchRoom
}

// leastFill is the fill below which a node is mended, and slack what is left free where two nodes become one or share
// what they have, so that the next write does not undo it.
func leastFill(room int) int { return room * 3 / 8 }
func slackOf(room int) int   { return room / 8 }

// owned returns the node if it belongs to the edition, else a copy that does and takes its place.
func (n *node[E]) owned(ed *edition) *node[E] {
	switch {
	case n.owner == ed:
		if n.page != nil {
			n.page.drop()
		}
		return n
	case n.page != nil:
		p := newPage[E](ed)
		p.node.size, p.items = n.size, n.page.items
		n.leave(ed)
		return &p.node
	}
	b := newBranch[E](ed)
	b.node.size, b.first, b.n, b.kids = n.size, n.branch.first, n.branch.n, n.branch.kids
	return &b.node
}

// sibling returns an empty node of the same kind.
func (n *node[E]) sibling(ed *edition) *node[E] {
	if n.page != nil {
		return &newPage[E](ed).node
	}
	return &newBranch[E](ed).node
}

// pull moves the first k entries of right to the end of left; a negative k moves -k the other way. Both belong to
// the edition that goes on.
func pull[E any](left, right *node[E], k int) {
	if left.page != nil {
		shift(left.page.items[:], right.page.items[:], left.size, right.size, k)
		left.size += k
		right.size -= k
		return
	}
	l, r := left.branch, right.branch
	shift(l.kids[:], r.kids[:], l.n, r.n, k)
	l.n += k
	r.n -= k
	l.count()
	r.count()
}

// shift is pull for the ln used slots of l and the rn of r.
func shift[T any](l, r []*T, ln, rn, k int) {
	if k >= 0 {
		copy(l[ln:], r[:k])
		copy(r, r[k:rn])
		clear(r[rn-k : rn])
		return
	}
	copy(r[-k:], r[:rn])
	copy(r, l[ln+k:ln])
	clear(l[ln+k : ln])
}

// join adds all entries of right to left, which belongs to the edition that goes on. Right stays as it is.
func join[E any](left, right *node[E]) {
	if left.page != nil {
		left.size += copy(left.page.items[left.size:], right.page.used())
		return
	}
	l := left.branch
	l.n += copy(l.kids[l.n:], right.branch.used())
	l.count()
}

// count makes first and size anew.
func (b *branch[E]) count() {
	b.node.size, b.first = 0, nil
	for i, kid := range b.used() {
		if i == 0 {
			b.first = kid.first()
		}
		b.node.size += kid.size
	}
}

// insertAt puts v at i of the n used slots.
func insertAt[T any](slots []*T, n, i int, v *T) {
	copy(slots[i+1:n+1], slots[i:n])
	slots[i] = v
}

// removeAt takes what is at i out of the n used slots.
func removeAt[T any](slots []*T, n, i int) {
	copy(slots[i:], slots[i+1:n])
	slots[n-1] = nil
}

// drop gives back what is kept with a page, which is then as if it were new.
func (p *page[E]) drop() {
	if p.kept.Load() != nil {
		p.kept.Swap(nil).forms.Drop()
	}
}

// leave says that a node has left the latest state, if the edition makes that: older states may still be read, but what
// would be kept for them nobody would drop.
func (n *node[E]) leave(ed *edition) {
	if n.page == nil || ed.forms == nil {
		return
	}
	if k := n.page.kept.Swap(&ed.left); k != nil {
		k.forms.Drop()
	}
}
