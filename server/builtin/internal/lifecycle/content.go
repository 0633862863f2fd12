package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/server/catalogue"
	"github.com/keelson-dev/keelson/server/internal/background"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// deleteContent deletes all objects in a namespace, and returns what it found and what is left. Pods are deleted first, because
// they may use the other objects: see KEP-5080.
func (l *Lifecycle) deleteContent(ctx context.Context, ns *corev1.Namespace) *left {
	out := &left{}
	for _, k := range l.contentKinds() {
		if ctx.Err() != nil {
			return out
		}
		if err := l.deleteKind(ctx, k, ns, out); err != nil {
			out.failures = append(out.failures, err)
		}
		if k.Resource.GroupResource() == pods && !out.empty() {
			return out
		}
	}
	return out
}

var pods = schema.GroupResource{Resource: "pods"}

// contentKinds returns the kinds whose objects may have to be deleted, pods first.
func (l *Lifecycle) contentKinds() []catalogue.Kind {
	kinds := slices.DeleteFunc(l.catalogue.Kinds(), func(k catalogue.Kind) bool {
		return !k.Namespaced || !slices.Contains(k.Verbs, "list") || !slices.Contains(k.Verbs, "delete")
	})
	slices.SortStableFunc(kinds, func(a, b catalogue.Kind) int { return first(b) - first(a) })
	return kinds
}

func first(k catalogue.Kind) int {
	if k.Resource.GroupResource() == pods {
		return 1
	}
	return 0
}

// deleteKind deletes the objects of one kind. It leaves objects that are already being deleted to their finalizers.
func (l *Lifecycle) deleteKind(ctx context.Context, k catalogue.Kind, ns *corev1.Namespace, out *left) (err error) {
	defer l.panics.Caught(&err) // a Storage of the program may panic
	namespace := ns.Name
	objects, err := list(ctx, k, namespace)
	if err != nil || len(objects) == 0 {
		return err
	}
	out.seen = true
	// This read comes after the list. It detects that somebody removed the finalizer and that a new namespace of that name was
	// created, which the listed objects may belong to.
	if now, err := l.toEmpty(ctx, namespace); err != nil || now == nil || now.UID != ns.UID {
		return err
	}
	var failed error
	for _, m := range objects {
		if m.DeletionTimestamp == nil {
			if err := deleteOne(ctx, k, namespace, &m); err != nil && failed == nil {
				failed = err
			}
		}
	}
	if objects, err = list(ctx, k, namespace); err != nil {
		return err
	}
	for _, m := range objects {
		out.add(k.Resource.GroupResource(), &m)
	}
	return failed
}

// list returns the objects of a kind in a namespace. It drops objects of other namespaces, which a Storage of the program may
// return.
func list(ctx context.Context, k catalogue.Kind, namespace string) ([]metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	objects, err := k.Objects.List(ctx, namespace)
	if apierrors.IsMethodNotSupported(err) {
		return nil, nil
	}
	if err == nil { // a Storage of the program may return a partial list after a timeout
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", k.Resource.GroupResource(), err)
	}
	return slices.DeleteFunc(objects, func(m metav1.PartialObjectMetadata) bool { return m.Namespace != namespace }), nil
}

// deleteOne deletes an object as it was listed. It is no error if the object is gone or replaced by another one.
func deleteOne(ctx context.Context, k catalogue.Kind, namespace string, m *metav1.PartialObjectMetadata) error {
	policy := metav1.DeletePropagationBackground
	opts := &metav1.DeleteOptions{PropagationPolicy: &policy}
	if m.UID != "" {
		opts.Preconditions = &metav1.Preconditions{UID: &m.UID}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := k.Objects.Delete(ctx, namespace, m.Name, opts)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("delete %s %s: %w", k.Resource.GroupResource(), m.Name, err)
}

// sweep deletes the objects that creates on this server left in a namespace that is gone, after these creates have ended. If
// there is a new namespace of that name, its objects are kept.
func (l *Lifecycle) sweep(ctx context.Context, namespace string) {
	retry := background.Doubling(leastWait, mostWait)
	for failures := 0; ; failures++ {
		err := l.sweepOnce(ctx, namespace)
		if err == nil || ctx.Err() != nil {
			return
		}
		l.log.Log(loudness(failures), "a namespace that is gone could not be looked at yet", zap.String("namespace", namespace), zap.Error(err))
		if !background.Pause(ctx, retry.Step()) {
			return
		}
	}
}

// sweepOnce tries to delete all such objects. A failure does not stop the deletion of other kinds and objects.
func (l *Lifecycle) sweepOnce(ctx context.Context, namespace string) error {
	if err := l.gate.creates.wait(ctx, namespace); err != nil {
		return err
	}
	leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	var failed []error
	for _, k := range l.contentKinds() {
		if err := ctx.Err(); err != nil {
			return err
		}
		again, err := l.sweepKind(ctx, k, namespace)
		if again {
			return nil
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// sweepKind is sweepOnce for one kind. again is true if the namespace exists again, so that nothing may be deleted.
func (l *Lifecycle) sweepKind(ctx context.Context, k catalogue.Kind, namespace string) (again bool, err error) {
	defer l.panics.Caught(&err) // a Storage of the program may panic
	objects, err := list(ctx, k, namespace)
	if err != nil || len(objects) == 0 {
		return false, err
	}
	// This check comes after the list: the listed objects are older than a namespace that is created now.
	if exists, err := l.exists(ctx, namespace); exists || err != nil {
		return exists, err
	}
	var failed []error
	for _, m := range objects {
		if m.DeletionTimestamp == nil && ctx.Err() == nil {
			failed = append(failed, deleteOne(ctx, k, namespace, &m))
		}
	}
	return false, errors.Join(failed...)
}

// exists reports whether there is a namespace of that name in the storage.
func (l *Lifecycle) exists(ctx context.Context, namespace string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := l.registry.GetStored(as(ctx), namespace)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// toEmpty reads the namespace from the storage. It returns nil if there is nothing to do: the namespace is gone, is not being
// deleted, or does not have the finalizer kubernetes.
func (l *Lifecycle) toEmpty(ctx context.Context, name string) (*corev1.Namespace, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rec, err := l.registry.GetStored(as(ctx), name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	obj, err := l.registry.Decode(rec)
	if err != nil {
		return nil, err
	}
	ns, ok := obj.(*corev1.Namespace)
	if !ok || ns.DeletionTimestamp == nil || !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return nil, nil
	}
	return ns, nil
}

// enter waits until fewer than maxPasses namespaces are being worked on; leave must be called at the end of the work.
func (l *Lifecycle) enter(ctx context.Context) (leave func(), err error) {
	select {
	case l.passes <- struct{}{}:
		return func() { <-l.passes }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
