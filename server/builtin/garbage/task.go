package garbage

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// duty is what there may be to do for an object.
type duty int8

const (
	nothing duty = iota
	examine      // an owner may be absent or waiting
	release      // it is being deleted in the foreground, and nothing is waited for
	orphan       // its dependents have to lose their references to it
)

// task is what there may be to do for one object. It only says where to look: whoever does it reads the object anew.
type task struct {
	do        duty
	kind      schema.GroupResource
	namespace string
	name      string
	uid       types.UID
}

// task returns what there is to do for an object now.
func (g *graph) task(uid types.UID) task {
	n := g.nodes[uid]
	if n == nil {
		return task{}
	}
	do := g.duty(n)
	if do == nothing {
		return task{}
	}
	return taskOf(n, do)
}

func taskOf(n *node, do duty) task {
	return task{do: do, kind: n.kind.resource, namespace: n.namespace.Value(), name: n.name, uid: n.uid}
}

// take returns the objects that have to be looked at since the last call, with the kind of each.
func (g *graph) take(yield func(types.UID, schema.GroupResource)) {
	for _, uid := range g.due {
		if n := g.nodes[uid]; n != nil && n.kind != nil {
			yield(n.uid, n.kind.resource)
		}
	}
	g.due = nil
}

// duty says what there is to do for n.
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

// doubtful says whether a reference has to be looked at: its owner may be absent, or is waiting.
func (g *graph) doubtful(e *edge) bool {
	o := e.owner
	if e.deviant == nil {
		switch {
		case o.state.observed():
			return o.state.waiting()
		case o.kind != nil:
			return true // it has been seen, and is gone
		}
	}
	gvk := o.claimed
	if e.deviant != nil {
		gvk = intern(e.deviant.gvk)
	}
	k := g.names[gvk.Value()]
	return k != nil && (k.stage != pending || o.state.observed())
}

// blocked says whether the foreground deletion of n has to wait for a dependent. A dependent that itself waits for n
// does not count, through however many others: all of them would wait for ever.
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

// waitingAbove returns the objects that wait for n, directly or through others; it is nil when there are none.
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

// waitsFor says whether the graph knows that owner waits, or would wait, for dependent.
func (g *graph) waitsFor(owner, dependent types.UID) bool {
	d := g.nodes[dependent]
	if d == nil {
		return false
	}
	for i := range d.edges {
		if e := &d.edges[i]; e.owner.uid == owner && e.counts() {
			return true
		}
	}
	return false
}

// dependents returns the dependents of an object, whatever else their references say, as tasks that have to be looked
// at.
func (g *graph) dependents(uid types.UID) []task {
	n := g.nodes[uid]
	if n == nil {
		return nil
	}
	var out []task
	for e := n.dependents; e != nil; e = e.next {
		out = append(out, taskOf(e.dependent, examine))
	}
	return out
}

// owns says whether an object has dependents.
func (g *graph) owns(uid types.UID) bool {
	n := g.nodes[uid]
	return n != nil && n.dependents != nil
}

// observed says whether an object has been seen, and is not known to be gone.
func (g *graph) observed(uid types.UID) bool {
	n := g.nodes[uid]
	return n != nil && n.state.observed()
}

// consider remembers n if there is something to do for it.
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

func (g *graph) considerAll() {
	for _, n := range g.nodes {
		g.consider(n)
	}
}
