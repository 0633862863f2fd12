package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// left is the content of a namespace that one pass found.
type left struct {
	kinds      map[schema.GroupResource]int // number of objects of each kind that are left
	finalizers map[string]int               // number of objects with each finalizer
	failures   []error
	seen       bool // objects were found, which may be gone now
}

// empty reports whether the pass found nothing at all.
func (c *left) empty() bool { return !c.seen && len(c.failures) == 0 }

// add counts an object that is left.
func (c *left) add(resource schema.GroupResource, m metav1.Object) {
	if c.kinds == nil {
		c.kinds, c.finalizers = map[schema.GroupResource]int{}, map[string]int{}
	}
	c.kinds[resource]++
	for _, f := range m.GetFinalizers() {
		c.finalizers[f]++
	}
}

// objects returns the number of objects that are left.
func (c *left) objects() int {
	n := 0
	for _, count := range c.kinds {
		n += count
	}
	return n
}

// conditions returns the conditions of a namespace that is being deleted, without times. The types and their meaning are those of
// NamespaceConditionType in https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/namespace-v1/. The reasons and
// messages are those of the namespace controller of Kubernetes. Two of the conditions never report a failure, because a server
// always has the list of its kinds.
func (c *left) conditions() []corev1.NamespaceCondition {
	out := []corev1.NamespaceCondition{
		{Type: corev1.NamespaceDeletionDiscoveryFailure, Reason: "ResourcesDiscovered", Message: "All resources successfully discovered"},
		{Type: corev1.NamespaceDeletionGVParsingFailure, Reason: "ParsedGroupVersions", Message: "All legacy kube types successfully parsed"},
		{Type: corev1.NamespaceDeletionContentFailure, Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization"},
		{Type: corev1.NamespaceContentRemaining, Reason: "ContentRemoved", Message: "All content successfully removed"},
		{Type: corev1.NamespaceFinalizersRemaining, Reason: "ContentHasNoFinalizers", Message: "All content-preserving finalizers finished"},
	}
	for i := range out {
		out[i].Status = corev1.ConditionFalse
	}
	set := func(i int, reason, message string) {
		out[i].Status, out[i].Reason, out[i].Message = corev1.ConditionTrue, reason, message
	}
	if n := len(c.failures); n > 0 {
		set(2, "ContentDeletionFailed", fmt.Sprintf("Failed to delete all resource types, %d remaining: %v", n, utilerrors.NewAggregate(c.failures)))
	}
	if len(c.kinds) > 0 {
		var texts []string
		for resource, n := range c.kinds {
			texts = append(texts, fmt.Sprintf("%s.%s has %d resource instances", resource.Resource, resource.Group, n))
		}
		slices.Sort(texts)
		set(3, "SomeResourcesRemain", "Some resources are remaining: "+strings.Join(texts, ", "))
	}
	if len(c.finalizers) > 0 {
		var texts []string
		for _, name := range slices.Sorted(maps.Keys(c.finalizers)) {
			texts = append(texts, fmt.Sprintf("%s in %d resource instances", name, c.finalizers[name]))
		}
		set(4, "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: "+strings.Join(texts, ", "))
	}
	return out
}

// settle sets the conditions in a status, and reports whether that changed it. The time of a condition is that of the last change
// from true to false or back.
func settle(status *corev1.NamespaceStatus, conditions []corev1.NamespaceCondition, now metav1.Time) bool {
	changed := false
	for _, c := range conditions {
		c.LastTransitionTime = now
		i := slices.IndexFunc(status.Conditions, func(old corev1.NamespaceCondition) bool { return old.Type == c.Type })
		if i < 0 {
			status.Conditions = append(status.Conditions, c)
			changed = true
			continue
		}
		old := status.Conditions[i]
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		if old != c {
			status.Conditions[i] = c
			changed = true
		}
	}
	return changed
}
