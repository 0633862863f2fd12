package cacher

// diff yields in order the elements that differ between two trees: was is in a, is in b, and nil means that the element was
// added or removed. Elements that compare equal and are the same pointer do not differ. Both trees must have the same order.
// Shared parts are skipped without a look into them, so between two states of one tree the cost is proportional to what was
// written between them.
func diff[E any](a, b tree[E], yield func(was, is *E) bool) {
	old, now := &place[E]{node: a.root}, &place[E]{node: b.root}
	for {
		was, is := old.peek(), now.peek()
		var c int
		switch {
		case was == nil && is == nil:
			return
		case was == nil:
			c = 1
		case is == nil:
			c = -1
		case old.node != nil && old.node == now.node:
			old.skip()
			now.skip()
			continue
		default:
			c = a.compare(was, is)
		}
		switch {
		case c < 0:
			is = nil
			old.next()
		case c > 0:
			was = nil
			now.next()
		case descend(old, now):
			continue
		default:
			old.next()
			now.next()
		}
		if was != is && !yield(was, is) {
			return
		}
	}
}

// descend moves two places with equal next elements into the branches that follow them, closer to what both trees may share.
// It returns false when no branch follows either place.
func descend[E any](a, b *place[E]) bool {
	descended := false
	for _, p := range []*place[E]{a, b} {
		if p.node != nil && p.node.branch != nil {
			p.enter()
			descended = true
		}
	}
	return descended
}

// place is a position in a tree: before a subtree, before an element of a page, or at the end.
type place[E any] struct {
	node  *node[E]     // the subtree that follows; nil: the place is in a page, or at the end
	items []*E         // the rest of the current page
	above [][]*node[E] // the rest of each branch around the place, the innermost last
}

// peek returns the next element, or nil at the end.
func (p *place[E]) peek() *E {
	switch {
	case p.node != nil:
		return p.node.first()
	case len(p.items) > 0:
		return p.items[0]
	}
	return nil
}

// next moves past the next element.
func (p *place[E]) next() {
	for p.node != nil {
		p.enter()
	}
	p.items = p.items[1:]
	if len(p.items) == 0 {
		p.skip()
	}
}

// enter moves into the subtree that follows.
func (p *place[E]) enter() {
	if page := p.node.page; page != nil {
		p.node, p.items = nil, page.used()
		return
	}
	kids := p.node.branch.used()
	p.above = append(p.above, kids[1:])
	p.node = kids[0]
}

// skip moves past the subtree that follows, or out of the page whose elements were read.
func (p *place[E]) skip() {
	p.node = nil
	for n := len(p.above) - 1; n >= 0; n-- {
		if kids := p.above[n]; len(kids) > 0 {
			p.node, p.above[n] = kids[0], kids[1:]
			return
		}
		p.above = p.above[:n]
	}
}
