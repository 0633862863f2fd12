package garbage

// duty returns what must be done for n.
func (g *graph) duty(n *node) duty {
	switch s := n.state; {
	case !s.observed():
		return nothing
	case s.orphaning():
		return orphan
	case s.waiting():
		if g.blocked(n) {
			return nothing
		}
		return release
	case s.deleting():
		return nothing
	}
	for i := range n.edges {
		if g.doubtful(&n.edges[i]) {
			return examine
		}
	}
	return nothing
}

// doubtful reports whether a reference must be examined because its owner may be absent or is waiting.
func (g *graph) doubtful(e *edge) bool {
	o := e.owner
	if e.deviant == nil {
		switch {
		case o.state.observed():
			return o.state.waiting()
		case o.kind != nil:
			return true // it was seen, and is gone now
		}
	}
	gvk := o.claimed
	if e.deviant != nil {
		gvk = intern(e.deviant.gvk)
	}
	k := g.names[gvk.Value()]
	return k != nil && (k.stage != pending || o.state.observed())
}

// blocked reports whether the foreground deletion of n must wait for a dependent. A dependent that itself waits for n, directly
// or through other objects, does not count: all of them would wait forever.
func (g *graph) blocked(n *node) bool {
	if n.blocking == 0 {
		return false
	}
	above := g.waitingAbove(n)
	if len(above) == 0 {
		return true
	}
	for e := n.dependents; e != nil; e = e.next {
		if e.counts() && !above[e.dependent] {
			return true
		}
	}
	return false
}

// waitingAbove returns the objects that wait for n, directly or through others, or nil.
func (g *graph) waitingAbove(n *node) map[*node]bool {
	var above map[*node]bool
	next := []*node{n}
	for len(next) > 0 {
		x := next[len(next)-1]
		next = next[:len(next)-1]
		for i := range x.edges {
			e := &x.edges[i]
			if !e.counts() || !e.owner.state.waiting() || above[e.owner] {
				continue
			}
			if above == nil {
				above = map[*node]bool{}
			}
			above[e.owner] = true
			next = append(next, e.owner)
		}
	}
	return above
}

// consider marks n as due if something must be done for it.
func (g *graph) consider(n *node) {
	if g.duty(n) != nothing {
		g.due = append(g.due, n.uid)
	}
}

func (g *graph) considerDependents(n *node) {
	for e := n.dependents; e != nil; e = e.next {
		g.consider(e.dependent)
	}
}

func (g *graph) considerWaitingOwners(n *node) {
	for i := range n.edges {
		if o := n.edges[i].owner; o.state.waiting() {
			g.consider(o)
		}
	}
}
