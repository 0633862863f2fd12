// Package finalizers has the rule of Kubernetes for the names of finalizers.
package finalizers

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unqualified is the error text for a finalizer for which IsQualified is false.
const Unqualified = "name is neither a standard finalizer name nor is it fully qualified"

// IsQualified reports whether the name of a finalizer has a domain, or has a meaning in Kubernetes itself.
func IsQualified(name string) bool {
	switch name {
	case metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, "kubernetes":
		return true
	}
	return strings.Contains(name, "/")
}
