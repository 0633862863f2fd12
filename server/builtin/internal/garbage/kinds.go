package garbage

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// kindInfo says what is to be known of a served kind.
type kindInfo struct {
	resource   schema.GroupResource // its name in the graph
	hub        schema.GroupVersionKind
	known      []schema.GroupVersionKind // every name of its kind, the hub among them
	namespaced bool
	collected  bool // its objects may be read and deleted, so that they are dependents
}

// stage says how far the graph knows the objects of a kind.
type stage int8

const (
	pending stage = iota // they are being shown for the first time: who is not known yet may come
	live                 // all of them were shown, and changes are
	failing              // they cannot be watched now
	unseen               // they cannot be watched at all
)

// kind is a served kind in the graph. It is good until the kind is withdrawn: one that is served again is another kind.
type kind struct {
	kindInfo
	stage stage
	epoch uint32 // counts how often the objects were shown from the start
}

// serve says which kinds are served from now on. Those that are no longer served make nothing absent: their objects are
// forgotten, and those of other kinds that refer to them wait for the kind to return. One that could not be watched is
// another kind from now on, since it may be served in another way.
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

// withdraw forgets what was seen of a kind.
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

// resolve returns the kind of the owner that a reference means; nil when nobody here can say. A version that is not served
// is understood when the owner itself was seen.
func (g *graph) resolve(uid types.UID, said claim) *kind {
	if k := g.names[said.gvk]; k != nil {
		return k
	}
	if n := g.nodes[uid]; n != nil && n.kind != nil && n.kind.is(said.gvk) && n.name == said.name {
		return n.kind
	}
	return nil
}

// begin says that all objects of k are about to be shown from the start.
func (g *graph) begin(k *kind) { k.epoch++ }

// synced says that all of them have been shown since begin: those that were not are gone.
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

// fail says that the objects of k are not shown any more: until the next begin, or, with unseen, ever.
func (g *graph) fail(k *kind, to stage) {
	first := k.stage == pending
	k.stage = to
	if first && g.serves(k) {
		g.considerAll()
	}
}
