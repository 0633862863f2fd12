package garbage

import (
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// graph knows who owns whom, as far as it was shown. It has no clock, lock or goroutine: one caller at a time says what
// was seen, and takes the objects that have to be looked at. What there is to do for one of them, task says.
type graph struct {
	nodes map[types.UID]*node
	kinds map[schema.GroupResource]*kind
	names map[schema.GroupVersionKind]*kind // every name of kinds
	due   []types.UID                       // to be looked at, some perhaps twice

	// sweeps is how many sweeps were begun, which the caller counts; since is how many it were when an owner was first
	// seen to wait.
	sweeps int64
	since  map[types.UID]int64
}

func newGraph() *graph {
	return &graph{nodes: map[types.UID]*node{}, since: map[types.UID]int64{}}
}

// node is an object, or the owner that an object refers to and that was not seen, or is gone. It is in the graph while
// either is so. There are as many as objects, so every field counts.
type node struct {
	uid  types.UID
	name string
	// kind is the object's; nil when it was never seen, or its kind was withdrawn. Then claimed is what the first
	// reference says it is.
	kind       *kind
	claimed    unique.Handle[schema.GroupVersionKind]
	namespace  unique.Handle[string] // of an object that was seen
	edges      []edge                // to its owners, in the order of its references
	dependents *edge                 // the first of those from its dependents
	blocking   int32                 // how many of these count for foreground deletion
	epoch      uint32                // of its kind, when it was seen last
	state      state
}

// edge is one reference. It lies in the edges of the dependent and hangs in the list of the owner.
type edge struct {
	owner, dependent *node
	prev, next       *edge // of the same owner
	// deviant is what the reference says of its owner if the owner is something else; nil if they agree.
	deviant  *claim
	block    bool // blockOwnerDeletion
	reported bool // that it is invalid
}

// state is what of an object's metadata matters.
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

// counts says whether the owner's foreground deletion waits for the dependent.
func (e *edge) counts() bool { return e.block && e.deviant == nil }

func intern(gvk schema.GroupVersionKind) unique.Handle[schema.GroupVersionKind] {
	return unique.Make(gvk)
}

// claim is what references say that agree with the node.
func (n *node) claim() claim {
	if n.kind != nil {
		return claim{n.kind.hub, n.name}
	}
	return claim{n.claimed.Value(), n.name}
}

// claim is what a reference says of its owner beside the uid.
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
