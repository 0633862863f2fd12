package garbage

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// standing is what a read has shown of one owner.
type standing int8

const (
	unknown standing = iota // nobody can say: it counts as an owner that is there
	solid                   // it is there
	waiting                 // it is there, and waits for its dependents to go
	absent                  // it is not there, and will never be
)

// act is what follows for a dependent.
type act int8

const (
	keep   act = iota // it stays as it is
	trim              // it stays, and loses its references to owners that are absent or waiting
	remove            // it is deleted
)

// verdict is an act, and how it is done.
type verdict struct {
	act    act
	policy metav1.DeletionPropagation // of a deletion
	refs   []metav1.OwnerReference    // that stay, when it is trimmed
}

// judge says what follows for an object that is not being deleted from how its owners stand, one for each of its
// references. owns says that it has dependents itself: then an owner that waits for it waits for them as well.
func judge(m *metav1.ObjectMeta, owners []standing, owns bool) verdict {
	var kept []metav1.OwnerReference
	waits := false
	for i, s := range owners {
		switch s {
		case absent:
		case waiting:
			waits = true
		default:
			kept = append(kept, m.OwnerReferences[i])
		}
	}
	switch {
	case len(kept) == len(owners): // also when there are none
		return verdict{act: keep}
	case len(kept) > 0:
		return verdict{act: trim, refs: kept}
	}
	policy := metav1.DeletePropagationBackground
	switch {
	case waits && owns:
		policy = metav1.DeletePropagationForeground
	case slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	}
	return verdict{act: remove, policy: policy}
}
