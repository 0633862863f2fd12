package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/server"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// deleteContent deletes every object in a namespace, and says what was found and what is left. Pods go before everything
// else, which they may be using: see KEP-5080.
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

// contentKinds are the kinds of which objects may have to be deleted, pods first.
func (l *Lifecycle) contentKinds() []server.ServedKind {
	kinds := slices.DeleteFunc(l.catalogue.Kinds(), func(k server.ServedKind) bool {
		return !k.Namespaced || !slices.Contains(k.Verbs, "list") || !slices.Contains(k.Verbs, "delete")
	})
	slices.SortStableFunc(kinds, func(a, b server.ServedKind) int { return first(b) - first(a) })
	return kinds
}

func first(k server.ServedKind) int {
	if k.Resource.GroupResource() == pods {
		return 1
	}
	return 0
}

// deleteKind deletes the objects of one kind. Those that are being deleted already are left to their finalizers.
func (l *Lifecycle) deleteKind(ctx context.Context, k server.ServedKind, ns *corev1.Namespace, out *left) error {
	namespace := ns.Name
	objects, err := list(ctx, k, namespace)
	if err != nil || len(objects) == 0 {
		return err
	}
	out.seen = true
	// After the list: what it shows is not that of a namespace of that name which is made when this one was let go by hand.
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

// list returns the objects of a kind in a namespace. A Storage of the program's may show others as well.
func list(ctx context.Context, k server.ServedKind, namespace string) ([]metav1.PartialObjectMetadata, error) {
	objects, err := k.Objects.List(ctx, namespace)
	if apierrors.IsMethodNotSupported(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", k.Resource.GroupResource(), err)
	}
	return slices.DeleteFunc(objects, func(m metav1.PartialObjectMetadata) bool { return m.Namespace != namespace }), nil
}

// deleteOne deletes an object as it was found. One that is gone, or in the place of which there is another, is no error.
func deleteOne(ctx context.Context, k server.ServedKind, namespace string, m *metav1.PartialObjectMetadata) error {
	policy := metav1.DeletePropagationBackground
	opts := &metav1.DeleteOptions{PropagationPolicy: &policy}
	if m.UID != "" {
		opts.Preconditions = &metav1.Preconditions{UID: &m.UID}
	}
	err := k.Objects.Delete(ctx, namespace, m.Name, opts)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("delete %s %s: %w", k.Resource.GroupResource(), m.Name, err)
}

// sweep deletes what creates of this server have left in a namespace that is gone, after they have ended. If there is a
// namespace of that name again, what is in it is that one's.
func (l *Lifecycle) sweep(ctx context.Context, namespace string) {
	retry := backoff{least: leastWait, most: mostWait}
	for failures := 0; ; failures++ {
		err := l.sweepOnce(ctx, namespace)
		if err == nil || ctx.Err() != nil {
			return
		}
		l.log.Log(loudness(failures), "a namespace that is gone could not be looked at yet", zap.String("namespace", namespace), zap.Error(err))
		if !pause(ctx, retry.wait(), nil, nil) {
			return
		}
	}
}

func (l *Lifecycle) sweepOnce(ctx context.Context, namespace string) (err error) {
	defer func() { // of a Storage of the program's
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	if err := l.gate.creates.wait(ctx, namespace); err != nil {
		return err
	}
	for _, k := range l.contentKinds() {
		objects, err := list(ctx, k, namespace)
		if err != nil {
			return err
		}
		if len(objects) == 0 {
			continue
		}
		// After the list: what it shows was there before a namespace that is made now.
		if _, err := l.registry.GetStored(ctx, namespace); !apierrors.IsNotFound(err) {
			return err
		}
		for _, m := range objects {
			if m.DeletionTimestamp != nil {
				continue
			}
			if err := deleteOne(ctx, k, namespace, &m); err != nil {
				return err
			}
		}
	}
	return nil
}
