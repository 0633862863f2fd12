package cacher

import (
	"iter"
	"sort"

	"github.com/keelson-dev/keelson/storage"
)

// tree is an ordered set of elements: of those that compare equal it has one. It consists of pages, runs of
// neighbouring elements, below branches that count what is in them.
//
// A tree is a value, and what an edition made of it is a state when the edition is over: copying the value keeps the
// state, nothing that happens later changes it, and any number may read it at a time without a lock. Two states
// share the pages and branches to which nothing was written between them. While an edition goes on, the value that it
// changes is used by its writer alone and has no copy in use; states of before are read by others meanwhile. One may
// go on from any state, with a new edition.
//
// Elements are the caller's. Where they stand must not change while a tree has them.
type tree[E any] struct {
	root    *node[E] // nil when empty
	compare func(a, b *E) int
}

// edition is a run of writes which nobody sees before it is over. What it makes or copies is its own and is changed
// in place by the writes that follow, so that only the first to a page copies. Its address is its identity; it is over
// when nobody writes with it again. One edition may write to several trees.
type edition struct {
	// forms is for what readers make of its pages. It is nil where nothing is kept, as in states on the side of those that
	// follow one another: their pages come and go with the readers who asked for them.
	forms *storage.FormCache
	left  kept // what pages have that left the tree with it
}

// newTree returns an empty tree. Compare returns a negative number when a comes before b, 0 when b takes the place
// of a.
func newTree[E any](compare func(a, b *E) int) tree[E] {
	return tree[E]{compare: compare}
}

func (t tree[E]) len() int {
	if t.root == nil {
		return 0
	}
	return t.root.size
}

// set puts e in the place of what compares equal, which is returned, or in its own; then it returns nil.
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

// put is set below a node of the edition. Without room for e it does nothing and is not ok.
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

// delete takes out what compares equal to like and returns it; nil when there is nothing.
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

// take is delete below a node of the edition, of what is there.
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

// seek returns how many elements before holds for.
func (p *page[E]) seek(before func(*E) bool) int {
	return sort.Search(p.node.size, func(i int) bool { return !before(p.items[i]) })
}

// seek returns the last kid whose first element before holds for, or the first kid.
func (b *branch[E]) seek(before func(*E) bool) int {
	return sort.Search(b.n-1, func(i int) bool { return !before(b.kids[i+1].first()) })
}

// own makes the i-th kid the edition's and returns it.
func (b *branch[E]) own(ed *edition, i int) *node[E] {
	b.kids[i] = b.kids[i].owned(ed)
	return b.kids[i]
}

// makeRoom makes room in the i-th kid, which is full: a neighbour that has some takes a part, else half of it becomes
// a kid of its own. It is false when there is no room for that.
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

// mend gives entries to the i-th kid, one of several, which has too few: it becomes one with a neighbour, or shares
// what that has.
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

// neighbour returns which kid beside the i-th uses less room, and how much; -1 when there is none.
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

// share divides what the i-th kid and the next have equally between them.
func (b *branch[E]) share(ed *edition, i int) {
	left, right := b.own(ed, i), b.own(ed, i+1)
	l, _ := left.fill()
	r, _ := right.fill()
	pull(left, right, (r-l)/2)
}

// find returns the element for which order is 0, or nil. Order is negative for what comes before it and positive
// for what comes after.
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

// rank returns how many elements before holds for. These are the first of the tree.
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

// walk yields the elements of the ranks [from, to) in order; ranks that the tree does not have are none. Meanwhile
// nothing is written to the tree.
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

// pages is walk by pages: items, never empty, are those elements of p that are in the range, all of them when it is
// as long as p. They are the page's and must not be changed.
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

// build makes a tree of elements that come in order, in a time proportional to their number. One that is not after
// all before it costs a set; of elements that compare equal the last stays.
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

// branchesOver makes the branches over a level, all of about the same fill.
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
