package lifecycle

import (
	"slices"
	"sync/atomic"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Finalizer is the subresource finalize of namespaces: a PUT replaces spec.finalizers, which nothing else changes, and the
// metadata. The namespace goes with the update that leaves it without finalizers, if it was deleted before. It
// implements registry.Opener, registry.Updater and registry.FieldResetter. The zero Finalizer answers 503 until the server has
// opened it. All methods may be called concurrently.
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
		Admitted: true, // as an Updater
	})
	if err != nil {
		return err
	}
	f.namespaces.Store(v)
	return nil
}

// HoldsContent reports whether spec.finalizers keep a namespace. It is the Finalizing of the kind's Strategy.
func HoldsContent(ns *corev1.Namespace) bool { return len(ns.Spec.Finalizers) > 0 }

// validateFinalize judges each of spec.finalizers by the rules for those of the metadata.
func validateFinalize(_ *registry.Call, ns, _ *corev1.Namespace) field.ErrorList {
	var problems field.ErrorList
	for i, name := range ns.Spec.Finalizers {
		problems = append(problems, ValidateFinalizer(name, field.NewPath("spec", "finalizers").Index(i))...)
	}
	return problems
}

// ValidateFinalizer finds what is wrong with one of spec.finalizers: it is a qualified name, or one of those that
// Kubernetes has without a domain.
func ValidateFinalizer(name corev1.FinalizerName, path *field.Path) field.ErrorList {
	problems := validation.ValidateFinalizerName(string(name), path)
	standard := []corev1.FinalizerName{corev1.FinalizerKubernetes, metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	if !slices.Contains([]byte(name), '/') && !slices.Contains(standard, name) {
		problems = append(problems, field.Invalid(path, string(name), "name is neither a standard finalizer name nor is it fully qualified"))
	}
	return problems
}

// Update implements registry.Updater. It never creates.
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

// ResetFields implements registry.FieldResetter: the status, which a PUT of finalize does not change.
func (f *Finalizer) ResetFields(*runtime.Kind) [][]string { return [][]string{{"status"}} }

// release takes the finalizer that stands for content off the namespace of that uid. A namespace that is gone, or another
// of its name, is none of its business.
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
