package accounts

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// perNamespace is a controller of one object in each namespace. ensure makes the object in a namespace, or changes it.
type perNamespace[T object] struct {
	namespaces *registry.Typed[*corev1.Namespace]
	objects    *registry.Typed[T]
	options    registry.ListOptions // select the objects
	readers    runtime.Readers
	ensure     func(ctx context.Context, namespace string) error
	queue      *work[string]
	log        *zap.Logger
}

// first implements controller.
func (c *perNamespace[T]) first(ctx context.Context) error {
	all, err := c.namespaces.List(ctx, "", registry.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for _, ns := range all {
		if ns.Status.Phase == corev1.NamespaceActive {
			errs = append(errs, c.work(ctx, ns.Name))
		}
	}
	return errors.Join(errs...)
}

// run implements controller.
func (c *perNamespace[T]) run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { c.queue.run(ctx, c.work, c.log) })
	running.Go(func() {
		follow(ctx, c.namespaces, registry.ListOptions{}, c.log, func(e registry.TypedEvent[*corev1.Namespace]) {
			if e.Type != apiwatch.Deleted && e.Object.Status.Phase == corev1.NamespaceActive {
				c.queue.add(e.Object.Name)
			}
		}, func() {})
	})
	running.Go(func() {
		follow(ctx, c.objects, c.options, c.log, func(e registry.TypedEvent[T]) {
			c.queue.add(e.Object.GetNamespace())
		}, func() { c.addAll(ctx) })
	})
	running.Wait()
}

// addAll has the controller look at every namespace.
func (c *perNamespace[T]) addAll(ctx context.Context) {
	for ns, err := range c.namespaces.All(ctx, "", registry.ListOptions{}) {
		if err != nil {
			c.log.Debug("namespaces cannot be listed", zap.Error(err))
			return
		}
		c.queue.add(ns.Name)
	}
}

// work makes the object of a namespace, unless the namespace is gone or is being deleted.
func (c *perNamespace[T]) work(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	ns, err := runtime.Read[*corev1.Namespace](c.readers).Get(ctx, "", namespace, runtime.Freshness{})
	if err == nil && ns.Status.Phase == corev1.NamespaceActive {
		err = c.ensure(ctx, namespace)
	}
	switch {
	case err == nil, apierrors.IsAlreadyExists(err): // another server has made it
		return nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the namespace is gone, or is being deleted
	}
	return fmt.Errorf("namespace %s: %w", namespace, err)
}

// newPerNamespace returns a controller of the objects of a name without its function ensure, and a registry for writes as a user.
func newPerNamespace[T object](h *server.Host, resource, name string, user *authn.User, log *zap.Logger) (*perNamespace[T], *registry.Typed[T], error) {
	namespaces, err := typed[*corev1.Namespace](h, "namespaces", user)
	if err != nil {
		return nil, nil, err
	}
	objects, err := typed[T](h, resource, user)
	if err != nil {
		return nil, nil, err
	}
	only := registry.ListOptions{Fields: fields.OneTermEqualSelector("metadata.name", name)}
	return &perNamespace[T]{namespaces: namespaces, objects: objects, options: only, readers: h.Readers(), queue: newWork[string](), log: log}, objects, nil
}
