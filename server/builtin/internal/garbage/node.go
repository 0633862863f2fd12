package garbage

import (
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// graph has the owners and dependents of all received objects. It has no clock, lock or goroutine: one caller at a time passes
// events to it and takes the objects that must be examined. The method task returns what must be done for an object.
type graph struct {
	nodes map[types.UID]*node
	kinds map[schema.GroupResource]*kind
	names map[schema.GroupVersionKind]*kind // all names of kinds
	due   []types.UID                       // objects to examine, possibly with duplicates

	// sweeps is the number of sweeps that began; the caller counts them. since has, for each waiting owner, the value of sweeps
	// when it was first seen waiting.
	sweeps int64
	since  map[types.UID]int64
}

func newGraph() *graph {
	return &graph{nodes: map[types.UID]*node{}, since: map[types.UID]int64{}}
}

// node is an object, or an owner that an object refers to and that was not observed or is gone. There are at least as many nodes
// as objects, so every field counts.
type node struct {
	uid  types.UID
	name string
	// kind is the kind of an observed object. It is nil if the object was never observed or its kind was withdrawn. Then claimed
	// is the kind according to the first reference.
	kind       *kind
	claimed    unique.Handle[schema.GroupVersionKind]
	namespace  unique.Handle[string] // of an observed object
	edges      []edge                // to its owners, in the order of its references
	dependents *edge                 // the first edge from its dependents
	blocking   int32                 // number of these edges that count for foreground deletion
	epoch      uint32                // of its kind, when it was last observed
	state      state
}

// edge is one reference. It is an element of the dependent's edges and of the owner's list.
type edge struct {
	owner, dependent *node
	prev, next       *edge // in the list of the owner
	// deviant is what the reference says about its owner if that is wrong, and nil if it is right.
	deviant  *claim
	block    bool // blockOwnerDeletion
	reported bool // the reference was reported as invalid
}

// state is the relevant part of an object's metadata.
type state uint8

func (s state) observed() bool { return s&stateObserved != 0 }

func (s state) deleting() bool { return s&stateDeleting != 0 }

func (s state) waiting() bool { return s&stateDeleting != 0 && s&stateForeground != 0 }

func (s state) orphaning() bool { return s&stateDeleting != 0 && s&stateOrphan != 0 }

func stateOf(m *metav1.ObjectMeta) state {
	s := stateObserved
	if m.DeletionTimestamp != nil {
		s |= stateDeleting
	}
	if slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents) {
		s |= stateForeground
	}
	if slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents) {
		s |= stateOrphan
	}
	return s
}

// counts reports whether the owner's foreground deletion waits for the dependent.
func (e *edge) counts() bool { return e.block && e.deviant == nil }

func intern(gvk schema.GroupVersionKind) unique.Handle[schema.GroupVersionKind] {
	return unique.Make(gvk)
}

// claim returns what correct references say about n.
func (n *node) claim() claim {
	if n.kind != nil {
		return claim{n.kind.hub, n.name}
	}
	return claim{n.claimed.Value(), n.name}
}

// claim is what a reference says about its owner, apart from the uid.
type claim struct {
	gvk  schema.GroupVersionKind
	name string
}

const (
	stateObserved state = 1 << iota
	stateDeleting
	stateForeground
	stateOrphan
)
