package cacher

import (
	"iter"
	"sort"

	"github.com/keelson-dev/keelson/storage"
)

// tree is an ordered set of elements; of elements that compare equal it has one. It consists of pages, which are runs of
// neighbouring elements, below branches, which count the elements in them.
//
// A tree is a value. What an edition made of it is a state when the edition has ended. A copy of the value keeps the state:
// no later write changes it, and any number of readers may read it concurrently without a lock. Two states share the pages
// and branches to which nothing was written between them. While an edition writes to a value, only its writer may use that
// value, and no copy of it may be in use; others may read earlier states meanwhile. Writes may continue from any state, with
// a new edition.
//
// Elements belong to the caller. Their place in the order must not change while a tree has them.
type tree[E any] struct {
	root    *node[E] // nil when empty
	compare func(a, b *E) int
}

// edition is a sequence of writes that no reader sees before it has ended. Nodes that it makes or copies belong to it, and
// its later writes change them in place. So only the first write to a page copies it. An edition is identified by its
// address. It has ended when nothing writes with it any more. One edition may write to several trees.
type edition struct {
	// forms is for the forms of its pages. It is nil where nothing is kept, as in older states that are made for a reader:
	// their pages exist only as long as the readers use them.
	forms *storage.FormCache
	left  kept // the kept of pages that have left the tree with it
}

// newTree returns an empty tree. compare returns a negative number when a comes before b, and 0 when b replaces a.
func newTree[E any](compare func(a, b *E) int) tree[E] {
	return tree[E]{compare: compare}
}

func (t tree[E]) len() int {
	if t.root == nil {
		return 0
	}
	return t.root.size
}

// set adds e. If an element compares equal, e replaces it and set returns it; otherwise set returns nil.
func (t *tree[E]) set(ed *edition, e *E) (old *E) {
	if t.root == nil {
		t.root = &newPage[E](ed).node
	}
	t.root = t.root.owned(ed)
	old, ok := t.root.put(ed, e, t.compare)
	if !ok {
		b := newBranch[E](ed)
		b.kids[0], b.n = t.root, 1
		b.makeRoom(ed, 0)
		b.count()
		t.root = &b.node
		old, _ = t.root.put(ed, e, t.compare)
	}
	return old
}

// put is set below a node of the edition. If there is no room for e, it does nothing and ok is false.
func (n *node[E]) put(ed *edition, e *E, compare func(a, b *E) int) (old *E, ok bool) {
	before := func(o *E) bool { return compare(o, e) < 0 }
	if p := n.page; p != nil {
		i := p.seek(before)
		switch {
		case i < n.size && compare(p.items[i], e) == 0:
			old, p.items[i] = p.items[i], e
			return old, true
		case n.size == pageRoom:
			return nil, false
		}
		insertAt(p.items[:], n.size, i, e)
		n.size++
		return nil, true
	}
	b := n.branch
	notAfter := func(o *E) bool { return compare(o, e) <= 0 }
	i := b.seek(notAfter)
	old, ok = b.own(ed, i).put(ed, e, compare)
	if !ok {
		if !b.makeRoom(ed, i) {
			return nil, false
		}
		old, _ = b.own(ed, b.seek(notAfter)).put(ed, e, compare)
	}
	if old == nil {
		n.size++
	}
	b.first = b.kids[0].first()
	return old, true
}

// delete removes the element that compares equal to like and returns it, or nil if there is none.
func (t *tree[E]) delete(ed *edition, like *E) (old *E) {
	if t.find(func(o *E) int { return t.compare(o, like) }) == nil {
		return nil
	}
	t.root = t.root.owned(ed)
	old = t.root.take(ed, like, t.compare)
	switch {
	case t.root.size == 0:
		t.root = nil
	case t.root.page == nil && t.root.branch.n == 1:
		t.root = t.root.branch.kids[0]
	}
	return old
}

// take is delete below a node of the edition; the element must exist.
func (n *node[E]) take(ed *edition, like *E, compare func(a, b *E) int) (old *E) {
	if p := n.page; p != nil {
		i := p.seek(func(o *E) bool { return compare(o, like) < 0 })
		old = p.items[i]
		removeAt(p.items[:], n.size, i)
		n.size--
		return old
	}
	b := n.branch
	i := b.seek(func(o *E) bool { return compare(o, like) <= 0 })
	kid := b.own(ed, i)
	old = kid.take(ed, like, compare)
	if used, room := kid.fill(); used < leastFill(room) {
		b.mend(ed, i)
	}
	n.size--
	b.first = b.kids[0].first()
	return old
}

// seek returns the number of elements for which before is true.
func (p *page[E]) seek(before func(*E) bool) int {
	return sort.Search(p.node.size, func(i int) bool { return !before(p.items[i]) })
}

// seek returns the last kid for whose first element before is true, or the first kid.
func (b *branch[E]) seek(before func(*E) bool) int {
	return sort.Search(b.n-1, func(i int) bool { return !before(b.kids[i+1].first()) })
}

// own makes the i-th kid belong to the edition and returns it.
func (b *branch[E]) own(ed *edition, i int) *node[E] {
	b.kids[i] = b.kids[i].owned(ed)
	return b.kids[i]
}

// makeRoom makes room in the i-th kid, which is full. It moves entries to a neighbour that has room, or half of them to a new
// kid. It returns false if there is no room for a new kid.
func (b *branch[E]) makeRoom(ed *edition, i int) bool {
	used, room := b.kids[i].fill()
	if j, n := b.neighbour(i); j >= 0 && n <= room-slackOf(room) {
		b.share(ed, min(i, j))
		return true
	}
	if b.n == branchRoom {
		return false
	}
	left := b.own(ed, i)
	right := left.sibling(ed)
	pull(left, right, -used/2)
	insertAt(b.kids[:], b.n, i+1, right)
	b.n++
	return true
}

// mend adds entries to the i-th of several kids, which has too few: it joins the kid with a neighbour, or moves some of the
// neighbour's entries.
func (b *branch[E]) mend(ed *edition, i int) {
	j, n := b.neighbour(i)
	used, room := b.kids[i].fill()
	left := min(i, j)
	if used+n > room-slackOf(room) {
		b.share(ed, left)
		return
	}
	join(b.own(ed, left), b.kids[left+1])
	b.kids[left+1].leave(ed)
	removeAt(b.kids[:], b.n, left+1)
	b.n--
}

// neighbour returns the neighbour of the i-th kid that uses fewer slots, and their number; j is -1 if there is none.
func (b *branch[E]) neighbour(i int) (j, used int) {
	j = -1
	if i > 0 {
		j = i - 1
		used, _ = b.kids[j].fill()
	}
	if i+1 < b.n {
		if n, _ := b.kids[i+1].fill(); j < 0 || n < used {
			j, used = i+1, n
		}
	}
	return j, used
}

// share divides the entries of the i-th kid and the next one equally between them.
func (b *branch[E]) share(ed *edition, i int) {
	left, right := b.own(ed, i), b.own(ed, i+1)
	l, _ := left.fill()
	r, _ := right.fill()
	pull(left, right, (r-l)/2)
}

// find returns the element for which order is 0, or nil. order is negative for elements before it and positive for elements
// after it.
func (t tree[E]) find(order func(*E) int) *E {
	n := t.root
	if n == nil {
		return nil
	}
	for n.page == nil {
		n = n.branch.kids[n.branch.seek(func(e *E) bool { return order(e) <= 0 })]
	}
	i := n.page.seek(func(e *E) bool { return order(e) < 0 })
	if i == n.size || order(n.page.items[i]) != 0 {
		return nil
	}
	return n.page.items[i]
}

// rank returns the number of elements for which before is true. They must be the first ones of the tree.
func (t tree[E]) rank(before func(*E) bool) (rank int) {
	n := t.root
	if n == nil {
		return 0
	}
	for n.page == nil {
		i := n.branch.seek(before)
		for _, kid := range n.branch.kids[:i] {
			rank += kid.size
		}
		n = n.branch.kids[i]
	}
	return rank + n.page.seek(before)
}

// walk yields the elements with the ranks [from, to) in order; ranks that do not exist are ignored. Nothing may write to the
// tree meanwhile.
func (t tree[E]) walk(from, to int, yield func(*E) bool) {
	t.pages(from, to, func(_ *page[E], items []*E) bool {
		for _, e := range items {
			if !yield(e) {
				return false
			}
		}
		return true
	})
}

// pages is walk by pages. items, which is never empty, has the elements of p that are in the range; it is the whole page if
// it is as long as p. items belongs to the page and must not be changed.
func (t tree[E]) pages(from, to int, yield func(p *page[E], items []*E) bool) {
	from, to = max(from, 0), min(to, t.len())
	if from < to {
		t.root.pages(from, to, yield)
	}
}

func (n *node[E]) pages(from, to int, yield func(p *page[E], items []*E) bool) bool {
	if p := n.page; p != nil {
		return yield(p, p.items[from:to:to])
	}
	for _, kid := range n.branch.used() {
		if to <= 0 {
			break
		}
		if from < kid.size && !kid.pages(max(from, 0), min(to, kid.size), yield) {
			return false
		}
		from, to = from-kid.size, to-kid.size
	}
	return true
}

// build makes a tree of elements that come in order, in a time proportional to their number. An element that is not after all
// previous ones costs a set. Of elements that compare equal the last one stays.
func build[E any](compare func(a, b *E) int, ed *edition, elements iter.Seq[*E]) tree[E] {
	t := newTree(compare)
	var level []*node[E]
	var p *page[E]
	var last *E
	var late []*E
	for e := range elements {
		if last != nil && compare(last, e) >= 0 {
			late = append(late, e)
			continue
		}
		if p == nil || p.node.size == pageRoom-slackOf(pageRoom) {
			p = newPage[E](ed)
			level = append(level, &p.node)
		}
		p.items[p.node.size] = e
		p.node.size++
		last = e
	}
	if n := len(level); n > 1 && p.node.size < leastFill(pageRoom) {
		left := level[n-2]
		pull(left, &p.node, (p.node.size-left.size)/2)
	}
	for len(level) > 1 {
		level = branchesOver(ed, level)
	}
	if len(level) == 1 {
		t.root = level[0]
	}
	for _, e := range late {
		t.set(ed, e)
	}
	return t
}

// branchesOver makes the branches above a level, all with about the same fill.
func branchesOver[E any](ed *edition, level []*node[E]) []*node[E] {
	const fill = branchRoom - branchRoom/8
	n := (len(level) + fill - 1) / fill
	branches := make([]*node[E], n)
	for i := range branches {
		b := newBranch[E](ed)
		b.n = copy(b.kids[:], level[i*len(level)/n:(i+1)*len(level)/n])
		b.count()
		branches[i] = &b.node
	}
	return branches
}
