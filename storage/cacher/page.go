package cacher

import "sync/atomic"

// With pointers of 8 bytes, a page and a branch have 256 bytes each, a size class of the allocator. The first write to a
// state copies one page and the branches above it: 1 KiB in a tree of 100,000 elements. Longer pages cost more for each write
// and save little: with twice the length, 1 of 12 bytes for each element.
const (
	pageRoom   = 27 // maximum number of elements of a page
	branchRoom = 26 // maximum number of nodes below a branch
)

// node is the root of a subtree, which is a page or a branch.
type node[E any] struct {
	owner  *edition
	page   *page[E]   // the page of this node; nil for a branch
	branch *branch[E] // the branch of this node; nil for a page
	size   int        // number of elements in the subtree
}

// page is a run of neighbouring elements. A page of a state never changes, except for kept.
type page[E any] struct {
	node  node[E]
	kept  atomic.Pointer[kept]
	items [pageRoom]*E // the first node.size are in use
}

// branch is a run of neighbouring subtrees, which all have the same height.
type branch[E any] struct {
	node  node[E]
	first *E // the first element of the subtree
	n     int
	kids  [branchRoom]*node[E] // the first n are in use
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

// fill returns how many slots of a node are used, and how many it has.
func (n *node[E]) fill() (used, room int) {
	if n.page != nil {
		return n.size, pageRoom
	}
	return n.branch.n, branchRoom
}

// A node that uses fewer slots than leastFill is mended. Where two nodes are joined or share their entries, slackOf slots are
// left free, so that the next write does not undo that.
func leastFill(room int) int { return room * 3 / 8 }
func slackOf(room int) int   { return room / 8 }

// owned returns the node if it belongs to the edition, and otherwise a copy that does.
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

// pull moves the first k entries of right to the end of left; a negative k moves -k entries the other way. Both must belong
// to the current edition.
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

// shift is pull for the ln used slots of l and the rn used slots of r.
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

// join appends all entries of right to left, which must belong to the current edition. right is not changed.
func join[E any](left, right *node[E]) {
	if left.page != nil {
		left.size += copy(left.page.items[left.size:], right.page.used())
		return
	}
	l := left.branch
	l.n += copy(l.kids[l.n:], right.branch.used())
	l.count()
}

// count computes first and size.
func (b *branch[E]) count() {
	b.node.size, b.first = 0, nil
	for i, kid := range b.used() {
		if i == 0 {
			b.first = kid.first()
		}
		b.node.size += kid.size
	}
}

// insertAt inserts v at i into the n used slots.
func insertAt[T any](slots []*T, n, i int, v *T) {
	copy(slots[i+1:n+1], slots[i:n])
	slots[i] = v
}

// removeAt removes slot i of the n used slots.
func removeAt[T any](slots []*T, n, i int) {
	copy(slots[i:], slots[i+1:n])
	slots[n-1] = nil
}

// drop removes what is kept with a page.
func (p *page[E]) drop() {
	if p.kept.Load() != nil {
		p.kept.Swap(nil).forms.Drop()
	}
}

// leave marks a page as having left the latest state, if the edition writes to that state. Older states may still be read,
// but forms that would be kept for them would never be dropped.
func (n *node[E]) leave(ed *edition) {
	if n.page == nil || ed.forms == nil {
		return
	}
	if k := n.page.kept.Swap(&ed.left); k != nil {
		k.forms.Drop()
	}
}
