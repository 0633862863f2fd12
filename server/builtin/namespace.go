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

// Namespace returns the kind Namespace for v1 of the core group, as kube-apiserver serves it. finalize is the Storage of
// its subresource finalize.
//
// See https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/namespace-v1/.
func Namespace(finalize any) server.Resource {
	return server.Kind("Namespace", server.KindOptions[*corev1.Namespace]{
		ShortNames:       []string{"ns"},
		ClusterScoped:    true,
		Strategy:         namespaceStrategy(),
		Default:          defaultNamespace,
		SelectableFields: []string{"status.phase"},
		Verbs:            []string{"create", "delete", "get", "list", "patch", "update", "watch"}, // each on its own: no deletecollection
		Columns: []server.Column[*corev1.Namespace]{
			{Name: "Status", Description: "The status of the namespace", Value: func(ns *corev1.Namespace) any { return string(ns.Status.Phase) }},
			ageColumn[*corev1.Namespace](),
		},
		Subresources: map[string]server.Subresource{"finalize": {Storage: finalize}},
	})
}

// defaultNamespace labels a namespace with its name, whatever it was labelled with, so that selectors of labels can
// choose it, and says that it is active if nothing else is said.
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

// namespaceStrategy is what kube-apiserver does with namespaces. spec.finalizers is written when a namespace is made, and
// then only through finalize; the phase follows from the deletionTimestamp.
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

// terminateNamespace marks a namespace, however empty it is. While spec.finalizers holds it, another DELETE changes nothing;
// the one after that is as of any object.
func terminateNamespace(_ *registry.Call, ns *corev1.Namespace, now metav1.Time) bool {
	if ns.DeletionTimestamp != nil {
		return lifecycle.HoldsContent(ns)
	}
	ns.DeletionTimestamp = &now
	ns.Status.Phase = corev1.NamespaceTerminating
	return true
}

// validateNamespace judges the finalizers of a new namespace. Unlike in an update through finalize, the errors do not tell
// which one is wrong but by its name.
func validateNamespace(_ *registry.Call, ns *corev1.Namespace) field.ErrorList {
	var problems field.ErrorList
	for _, name := range ns.Spec.Finalizers {
		problems = append(problems, lifecycle.ValidateFinalizer(name, field.NewPath("spec", "finalizers"))...)
	}
	return problems
}

// validateNamespaceUpdate looks at the metadata only, for nothing else changes.
func validateNamespaceUpdate(_ *registry.Call, ns, _ *corev1.Namespace) field.ErrorList {
	return validateGenerateName(ns, validation.ValidateNamespaceName)
}

// validateNamespaceStatus refuses a phase other than the one that follows from the deletionTimestamp.
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
