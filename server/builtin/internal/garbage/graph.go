package garbage

import (
	"slices"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// observe stores the current metadata of an object. It keeps no part of m.
func (g *graph) observe(k *kind, m *metav1.ObjectMeta) {
	if m.UID == "" || !g.serves(k) {
		return
	}
	n := g.nodes[m.UID]
	if n == nil {
		n = g.add(m.UID)
	}
	if n.state.observed() && n.kind != k {
		return // two kinds have the same object: the first one counts
	}
	was, claimed := n.state, claim{}
	if !was.observed() && n.dependents != nil {
		claimed = n.claim()
	}
	if n.name != m.Name {
		n.name = strings.Clone(m.Name)
	}
	n.kind, n.namespace, n.epoch, n.state = k, unique.Make(m.Namespace), k.epoch, stateOf(m)
	if !was.observed() && n.dependents != nil {
		g.relabel(n, claimed)
		g.considerDependents(n)
	}
	switch {
	case n.state.waiting() && !was.waiting():
		g.since[n.uid] = g.sweeps
		g.considerDependents(n)
	case was.waiting() && !n.state.waiting():
		delete(g.since, n.uid)
	}
	if k.collected {
		g.link(n, m.OwnerReferences)
	}
	if n.state.waiting() && !was.waiting() {
		g.considerWaitingOwners(n) // n may complete a cycle
	}
	g.consider(n)
}

// forget removes an object that is gone.
func (g *graph) forget(k *kind, uid types.UID) {
	if n := g.nodes[uid]; n != nil && n.kind == k && n.state.observed() && g.serves(k) {
		g.vanish(n)
	}
}

// vanish changes the node of an observed object to that of one that is gone.
func (g *graph) vanish(n *node) {
	g.unlink(n)
	n.state = 0
	delete(g.since, n.uid)
	g.considerDependents(n)
	g.drop(n)
}

func (g *graph) add(uid types.UID) *node {
	n := &node{uid: types.UID(strings.Clone(string(uid)))}
	g.nodes[n.uid] = n
	return n
}

// drop removes a node that is neither observed nor referred to.
func (g *graph) drop(n *node) {
	if !n.state.observed() && n.dependents == nil {
		delete(g.nodes, n.uid)
	}
}

// link replaces the edges of n by those of refs. It considers waiting owners that are or were referred to.
func (g *graph) link(n *node, refs []metav1.OwnerReference) {
	if g.linked(n, refs) {
		return
	}
	old := n.edges
	n.edges = nil
	if len(refs) > 0 {
		n.edges = make([]edge, 0, len(refs)) // never reallocated: pointers to its elements are kept
	}
	for i := range refs {
		if refs[i].UID != "" {
			g.refer(n, &refs[i])
		}
	}
	keepReported(old, n.edges)
	g.unhook(old) // after the new ones, so that an owner in both is not dropped
	g.considerWaitingOwners(n)
}

// keepReported copies the marks of reported references from old edges to new ones.
func keepReported(old, edges []edge) {
	var reported map[*node]bool
	for i := range old {
		if old[i].reported {
			if reported == nil {
				reported = map[*node]bool{}
			}
			reported[old[i].owner] = true
		}
	}
	if reported == nil {
		return
	}
	for i := range edges {
		edges[i].reported = reported[edges[i].owner]
	}
}

// linked reports whether the edges of n are those of refs.
func (g *graph) linked(n *node, refs []metav1.OwnerReference) bool {
	i := 0
	for j := range refs {
		ref := &refs[j]
		if ref.UID == "" {
			continue
		}
		if i == len(n.edges) {
			return false
		}
		e := &n.edges[i]
		i++
		if e.owner.uid != ref.UID || e.block != blocks(ref) {
			return false
		}
		content := claimOf(ref)
		agreed := g.agree(e.owner, n, content)
		if agreed != (e.deviant == nil) || !agreed && *e.deviant != content {
			return false
		}
	}
	return i == len(n.edges)
}

// refer adds the edge of one reference to n.
func (g *graph) refer(n *node, ref *metav1.OwnerReference) {
	content := claimOf(ref)
	o := g.nodes[ref.UID]
	if o == nil {
		o = g.add(ref.UID)
		o.claimed, o.name = intern(content.gvk), strings.Clone(content.name)
	}
	n.edges = append(n.edges, edge{owner: o, dependent: n, block: blocks(ref)})
	e := &n.edges[len(n.edges)-1]
	if !g.agree(o, n, content) {
		e.deviant = &claim{intern(content.gvk).Value(), strings.Clone(content.name)}
	}
	e.next = o.dependents
	if e.next != nil {
		e.next.prev = e
	}
	o.dependents = e
	if e.counts() {
		o.blocking++
	}
}

// unlink removes the edges of n from its owners.
func (g *graph) unlink(n *node) {
	edges := n.edges
	n.edges = nil
	g.unhook(edges)
}

// unhook removes edges from their owners. It considers owners that waited for the dependent.
func (g *graph) unhook(edges []edge) {
	for i := range edges {
		e := &edges[i]
		o := e.owner
		if e.prev != nil {
			e.prev.next = e.next
		} else {
			o.dependents = e.next
		}
		if e.next != nil {
			e.next.prev = e.prev
		}
		if e.counts() {
			o.blocking--
		}
		g.drop(o)
	}
	for i := range edges {
		if o := edges[i].owner; edges[i].counts() && o.state.waiting() {
			g.consider(o)
		}
	}
}

// relabel compares the references of the dependents with the current state of n. claimed is the content of the references that
// agreed with n before.
func (g *graph) relabel(n *node, claimed claim) {
	for e := n.dependents; e != nil; e = e.next {
		content := claimed
		if e.deviant != nil {
			content = *e.deviant
		}
		counted := e.counts()
		if g.agree(n, e.dependent, content) {
			e.deviant = nil
		} else if e.deviant == nil {
			e.deviant = &claim{content.gvk, strings.Clone(content.name)}
		}
		switch {
		case e.counts() && !counted:
			n.blocking++
		case counted && !e.counts():
			n.blocking--
		}
	}
}

// agree reports whether a reference of the dependent n is right about the owner o. If o was never observed, the first reference
// to it counts as right, and the namespace is ignored.
func (g *graph) agree(o, n *node, content claim) bool {
	switch {
	case o.name != content.name:
		return false
	case o.kind == nil:
		return o.claimed.Value() == content.gvk
	case o.kind.namespaced && o.namespace != n.namespace:
		return false
	}
	return o.kind.is(content.gvk)
}

func claimOf(ref *metav1.OwnerReference) claim {
	return claim{schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Name}
}

func blocks(ref *metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// is reports whether gvk names the kind, also with a version that is not served. Use it only for an object that was observed.
func (k *kindInfo) is(gvk schema.GroupVersionKind) bool {
	return slices.Contains(k.known, gvk) || gvk.GroupKind() == k.hub.GroupKind()
}

// serves reports whether k is still served. Late events of a withdrawn kind are ignored.
func (g *graph) serves(k *kind) bool { return g.kinds[k.resource] == k }

// owns reports whether an object has dependents.
func (g *graph) owns(uid types.UID) bool {
	n := g.nodes[uid]
	return n != nil && n.dependents != nil
}
