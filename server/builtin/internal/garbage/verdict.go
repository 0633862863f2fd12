package garbage

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// standing is the state of an owner according to a read.
type standing int8

const (
	unknown standing = iota // cannot be determined: it counts as existing
	solid                   // it exists
	waiting                 // it exists, and waits for the deletion of its dependents
	absent                  // it does not exist, and never will
)

// act is what is done with a dependent.
type act int8

const (
	keep   act = iota // nothing
	trim              // it loses its references to owners that are absent or waiting
	remove            // it is deleted
)

// verdict is an act with its details.
type verdict struct {
	act    act
	policy metav1.DeletionPropagation // for remove
	refs   []metav1.OwnerReference    // for trim: the remaining references
}

// judge decides about an object that is not being deleted. owners has the state of each of its owners, in the order of its
// references. owns says whether the object has dependents itself. If so, an owner that waits for it waits for these as well.
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
	case len(kept) == len(owners): // also if both are 0
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
