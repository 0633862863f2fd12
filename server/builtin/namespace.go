package builtin

import (
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/internal/lifecycle"
	"github.com/keelson-dev/keelson/server/registry"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Namespace returns the kind Namespace for v1 of the core group, as kube-apiserver serves it. finalize is the Storage of the
// subresource finalize and must not be nil: a value with some of the capabilities of package registry, or a registry.Opener that
// gets them. Only a program that has a namespace controller of its own calls Namespace; [New] serves the kind with the controller
// of this package.
//
// See https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/namespace-v1/.
func Namespace(finalize any) server.Resource {
	return server.Kind("Namespace", server.KindOptions[*corev1.Namespace]{
		ShortNames:       []string{"ns"},
		ClusterScoped:    true,
		Strategy:         namespaceStrategy(),
		Default:          defaultNamespace,
		SelectableFields: []string{"status.phase"},
		Verbs:            []string{"create", "delete", "get", "list", "patch", "update", "watch"}, // no deletecollection
		Columns: []server.Column[*corev1.Namespace]{
			{Name: "Status", Description: "The status of the namespace", Value: func(ns *corev1.Namespace) any { return string(ns.Status.Phase) }},
			ageColumn[*corev1.Namespace](),
		},
		Subresources: map[string]server.Subresource{"finalize": {Storage: finalize}},
	})
}

// defaultNamespace sets the label with the namespace's name, whatever its value was, so that label selectors can select the
// namespace. It also sets the default phase Active.
func defaultNamespace(ns *corev1.Namespace) {
	if ns.Name != "" && ns.Labels[corev1.LabelMetadataName] != ns.Name {
		if ns.Labels == nil {
			ns.Labels = map[string]string{}
		}
		ns.Labels[corev1.LabelMetadataName] = ns.Name
	}
	if ns.Status.Phase == "" {
		ns.Status.Phase = corev1.NamespaceActive
	}
}

// namespaceStrategy returns the strategy of kube-apiserver for namespaces. spec.finalizers is written by the create, and after
// that only through finalize. The phase follows from the deletionTimestamp.
func namespaceStrategy() registry.Strategy[*corev1.Namespace] {
	return registry.Strategy[*corev1.Namespace]{
		PrepareForCreate: func(_ *registry.Call, ns *corev1.Namespace) {
			if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
				ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
			}
			defaultNamespace(ns) // the name may have been generated just now
		},
		PrepareForUpdate: func(_ *registry.Call, ns, old *corev1.Namespace) { ns.Spec.Finalizers = old.Spec.Finalizers },

		ValidateName:         validation.ValidateNamespaceName,
		Validate:             validateNamespace,
		ValidateUpdate:       validateNamespaceUpdate,
		ValidateStatusUpdate: validateNamespaceStatus,

		Terminate:      terminateNamespace,
		Finalizing:     lifecycle.HoldsContent,
		NoGeneration:   true,
		StatusMetadata: true,
		ReturnDeleted:  true,
	}
}

// terminateNamespace marks a namespace as terminating, even if it is empty. While it has spec.finalizers, another DELETE changes
// nothing. Without them, a DELETE is handled as for any object.
func terminateNamespace(_ *registry.Call, ns *corev1.Namespace, now metav1.Time) bool {
	if ns.DeletionTimestamp != nil {
		return lifecycle.HoldsContent(ns)
	}
	ns.DeletionTimestamp = &now
	ns.Status.Phase = corev1.NamespaceTerminating
	return true
}

// validateNamespace validates the finalizers of a new namespace. Unlike in an update through finalize, the path in an error has
// no index.
func validateNamespace(_ *registry.Call, ns *corev1.Namespace) field.ErrorList {
	var problems field.ErrorList
	for _, name := range ns.Spec.Finalizers {
		problems = append(problems, lifecycle.ValidateFinalizer(name, field.NewPath("spec", "finalizers"))...)
	}
	return problems
}

// validateNamespaceUpdate validates only metadata, because nothing else changes.
func validateNamespaceUpdate(_ *registry.Call, ns, _ *corev1.Namespace) field.ErrorList {
	return validateGenerateName(ns, validation.ValidateNamespaceName)
}

// validateNamespaceStatus requires the phase that follows from the deletionTimestamp.
func validateNamespaceStatus(_ *registry.Call, ns, _ *corev1.Namespace) field.ErrorList {
	want, when := corev1.NamespaceActive, "empty"
	if ns.DeletionTimestamp != nil {
		want, when = corev1.NamespaceTerminating, "not empty"
	}
	if ns.Status.Phase == want {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("status", "Phase"), ns.Status.Phase,
		fmt.Sprintf("may only be '%s' if `deletionTimestamp` is %s", want, when))}
}
