package garbage

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// kindInfo describes a served kind.
type kindInfo struct {
	resource   schema.GroupResource // its key in the graph
	hub        schema.GroupVersionKind
	known      []schema.GroupVersionKind // all names of the kind, including hub
	namespaced bool
	collected  bool // its objects can be read and deleted, so they can be dependents
}

// stage is the state of the watch of a kind.
type stage int8

const (
	pending stage = iota // the objects are being listed for the first time: unseen ones may follow
	live                 // all objects were received, and changes are
	failing              // the kind cannot be watched at the moment
	unseen               // the kind cannot be watched at all
)

// kind is a served kind in the graph. It is valid until the kind is withdrawn; when the kind is served again, it is a new value.
type kind struct {
	kindInfo
	stage stage
	epoch uint32 // number of times that the objects were listed
}

// serve sets the kinds that are served from now on. Owners of withdrawn kinds do not become absent. The objects of such a kind
// are removed, and objects of other kinds that refer to them wait until the kind is served again. A kind that could not be
// watched becomes a new kind, because it may now be served in another way.
func (g *graph) serve(infos []kindInfo) {
	kinds := make(map[schema.GroupResource]*kind, len(infos))
	renamed := false
	for _, info := range infos {
		k := g.kinds[info.resource]
		if k == nil || k.namespaced != info.namespaced || k.collected != info.collected || k.stage == unseen {
			k = &kind{}
		}
		renamed = renamed || !slices.Equal(k.known, info.known)
		k.kindInfo = info
		kinds[info.resource] = k
	}
	for r, k := range g.kinds {
		if kinds[r] != k {
			g.withdraw(k)
		}
	}
	g.kinds, g.names = kinds, map[schema.GroupVersionKind]*kind{}
	for _, k := range kinds {
		for _, gvk := range k.known {
			g.names[gvk] = k
		}
	}
	if renamed {
		for _, n := range g.nodes {
			g.relabel(n, n.claim())
		}
	}
	g.considerAll()
}

// withdraw removes the observed objects of a kind.
func (g *graph) withdraw(k *kind) {
	for _, n := range g.nodes {
		if n.kind != k {
			continue
		}
		g.unlink(n)
		n.kind, n.state = nil, 0
		delete(g.since, n.uid)
		n.claimed = intern(k.hub)
		g.drop(n)
	}
}

// resolve returns the kind of the owner that a reference names, or nil if that is unknown. A version that is not served is
// accepted if the owner itself was observed.
func (g *graph) resolve(uid types.UID, content claim) *kind {
	if k := g.names[content.gvk]; k != nil {
		return k
	}
	if n := g.nodes[uid]; n != nil && n.kind != nil && n.kind.is(content.gvk) && n.name == content.name {
		return n.kind
	}
	return nil
}

// begin records that a new list of all objects of k begins.
func (g *graph) begin(k *kind) { k.epoch++ }

// synced records that all objects since begin were received. Objects that were not received are gone.
func (g *graph) synced(k *kind) {
	if !g.serves(k) {
		return
	}
	k.stage = live
	for _, n := range g.nodes {
		if n.kind == k && n.state.observed() && n.epoch != k.epoch {
			g.vanish(n)
		}
	}
	g.considerAll()
}

// fail records that the watch of k has ended: until the next begin, or forever if to is unseen.
func (g *graph) fail(k *kind, to stage) {
	first := k.stage == pending
	k.stage = to
	if first && g.serves(k) {
		g.considerAll()
	}
}
