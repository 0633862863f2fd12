package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gate is the admission plug-in. It decides what may be created in a namespace and which namespaces may be deleted. Its methods
// may be called concurrently.
type gate struct {
	namespaces   *registry.Registry
	allowMissing bool

	creates  creates
	suspects suspects
}

// Mutate implements admission.Mutator. It may refuse a request, and changes nothing.
func (g *gate) Mutate(ctx context.Context, r *admission.Request) error {
	if r.Kind.GroupKind() == namespaceKind {
		return g.judgeDelete(r)
	}
	// Only creates depend on the state of the namespace. Access reviews are exempt: their answer must not reveal it.
	if r.Operation != admission.Create || r.Namespace == "" || r.Resource.GroupResource() == accessReviews {
		return nil
	}
	// The create is counted before the namespace is read: a deletion that this read does not see waits for the create.
	g.creates.begin(ctx, r.Namespace)
	if g.knowsActive(ctx, r.Namespace) {
		return nil
	}
	now, err := g.namespaces.GetStored(as(ctx), r.Namespace)
	switch {
	case apierrors.IsNotFound(err) && g.allowMissing:
		return nil
	case err != nil:
		return err
	case terminating(now):
		return terminatingError(r)
	}
	return nil
}

// judgeDelete refuses the deletion of a namespace that must not be deleted, and records the deletion of any other namespace.
func (g *gate) judgeDelete(r *admission.Request) error {
	if r.Operation != admission.Delete {
		return nil
	}
	if slices.Contains(immortalNamespaces(), r.Name) {
		return apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, fmt.Errorf("this namespace may not be deleted"))
	}
	g.suspects.add(r.Name)
	return nil
}

// knowsActive reports whether the cache proves that the namespace is active.
func (g *gate) knowsActive(ctx context.Context, name string) bool {
	if g.suspects.has(name) {
		return false
	}
	rec, err := g.namespaces.GetRecord(as(ctx), name, storage.Read{Match: storage.Any})
	return err == nil && !terminating(rec)
}

// terminating reports whether a namespace is being deleted.
func terminating(rec storage.Record) bool {
	return rec.Body.Field("status.phase") == string(corev1.NamespaceTerminating)
}

// terminatingError returns the error of kube-apiserver. Clients recognize it by its cause.
func terminatingError(r *admission.Request) error {
	name := r.Name
	if m, ok := r.Object().(metav1.Object); ok && name == "" {
		name = m.GetGenerateName()
	}
	if name == "" {
		name = "Unknown"
	}
	err := apierrors.NewForbidden(r.Resource.GroupResource(), name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", r.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", r.Namespace),
		Field:   "metadata.namespace",
	})
	return err
}
