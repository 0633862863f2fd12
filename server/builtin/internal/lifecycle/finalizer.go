package lifecycle

import (
	"slices"
	"sync/atomic"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/internal/finalizers"
	"github.com/keelson-dev/keelson/server/registry"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Finalizer is the subresource finalize of namespaces. A PUT replaces spec.finalizers, which no other request changes, and the
// metadata. If the namespace is being deleted, the update that leaves it without finalizers removes it. Finalizer implements
// registry.Opener, registry.Updater, registry.FieldResetter and registry.Untabled. The zero Finalizer answers 503 until the server
// has opened it. All methods may be called concurrently.
type Finalizer struct {
	namespaces atomic.Pointer[registry.View]
}

// Open implements registry.Opener.
func (f *Finalizer) Open(r *registry.Registry) error {
	v, err := r.View("finalize", registry.ViewOptions{
		Strategy: registry.Erase(registry.Strategy[*corev1.Namespace]{
			PrepareForUpdate: func(_ *registry.Call, ns, old *corev1.Namespace) { ns.Status = *old.Status.DeepCopy() },
			ValidateUpdate:   validateFinalize,
		}),
		Admitted: true, // the server has admitted the request, because this is an Updater
	})
	if err != nil {
		return err
	}
	f.namespaces.Store(v)
	return nil
}

// HoldsContent reports whether a namespace has spec.finalizers. It is meant for Finalizing in the Strategy of the kind.
func HoldsContent(ns *corev1.Namespace) bool { return len(ns.Spec.Finalizers) > 0 }

// validateFinalize validates each of spec.finalizers by the rules for metadata.finalizers.
func validateFinalize(_ *registry.Call, ns, _ *corev1.Namespace) field.ErrorList {
	var problems field.ErrorList
	for i, name := range ns.Spec.Finalizers {
		problems = append(problems, ValidateFinalizer(name, field.NewPath("spec", "finalizers").Index(i))...)
	}
	return problems
}

// ValidateFinalizer returns the errors of one of spec.finalizers. It must be a qualified name or one of the standard names of
// Kubernetes that have no domain.
func ValidateFinalizer(name corev1.FinalizerName, path *field.Path) field.ErrorList {
	problems := validation.ValidateFinalizerName(string(name), path)
	if !finalizers.IsQualified(string(name)) {
		problems = append(problems, field.Invalid(path, string(name), finalizers.Unqualified))
	}
	return problems
}

// Update implements registry.Updater. It never creates an object.
func (f *Finalizer) Update(call *registry.Call, name string, update registry.ObjectUpdate, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	r := f.namespaces.Load()
	if r == nil {
		return nil, false, apierrors.NewServiceUnavailable("namespaces are not served yet")
	}
	rec, _, err := r.UpdateRecord(call, name, update, opts)
	if err != nil {
		return nil, false, err
	}
	obj, err := r.Decode(rec)
	return obj, false, err
}

// ResetFields implements registry.FieldResetter. It returns the status, which a PUT of finalize does not change.
func (f *Finalizer) ResetFields(*runtime.Kind) [][]string { return [][]string{{"status"}} }

// Untabled implements registry.Untabled: as in kube-apiserver, the answer to a PUT of finalize is no Table.
func (*Finalizer) Untabled() {}

// release removes the finalizer kubernetes from the namespace with the uid of ns. It does nothing if that namespace is gone or
// replaced by another one.
func (f *Finalizer) release(call *registry.Call, ns *corev1.Namespace) error {
	update := func(_ *registry.Call, current runtime.Object) (runtime.Object, error) {
		now, ok := current.(*corev1.Namespace)
		if !ok || now.UID != ns.UID {
			return nil, apierrors.NewNotFound(namespaceResource, ns.Name)
		}
		now.Spec.Finalizers = slices.DeleteFunc(now.Spec.Finalizers, func(n corev1.FinalizerName) bool { return n == corev1.FinalizerKubernetes })
		return now, nil
	}
	_, _, err := f.Update(call, ns.Name, update, nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
