package controller

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/server/crd/internal/cleanup"
	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	"github.com/keelson-dev/keelson/storage"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// clean starts the deletion of the objects of a definition that is being deleted, unless it is running.
func (c *Controller) clean(ctx context.Context, k *known) {
	if k.cleaning != nil || k.crd.DeletionTimestamp == nil || !slices.Contains(k.crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return
	}
	d := cleanup.Definition{
		Name: k.crd.Name, UID: k.crd.UID, Resource: schema.GroupResource{Group: k.crd.Spec.Group, Resource: k.crd.Spec.Names.Plural},
		Established: definition.IsTrue(k.crd, apiextensionsv1.Established),
		Served:      k.served != nil || definition.IsTrue(k.crd, apiextensionsv1.Established),
		Overlaps:    c.isTaken(k.crd) != "",
	}
	ctx, k.cleaning = context.WithCancel(ctx)
	c.work.Go(func() { c.cleanup.Run(ctx, d) })
}

// gone forgets a definition that is gone, and frees its names. last is its last state, zero if that was not seen.
func (c *Controller) gone(name string, last storage.Record) {
	k := c.known[name]
	if k == nil || k.crd == nil {
		return
	}
	was := k.crd
	if !last.Body.IsZero() {
		if crd, err := c.definitions.Decode(last); err == nil {
			was = crd
		}
	}
	if k.cleaning != nil {
		k.cleaning()
	}
	c.exit(k)
	c.lookFor(was.Spec.Group, k.crd.Status.AcceptedNames, was.Status.AcceptedNames)
	*k = known{served: k.served, leaving: k.leaving}
	switch terminating := definition.Condition(was, apiextensionsv1.Terminating); {
	case k.leaving:
	case k.served != nil && terminating != nil && terminating.Reason == string(definition.DeletionCompleted):
		k.leaving = true
		c.leaving[k] = true
		resource := k.served.resource
		c.cleanup.Gate.Guard(resource, true)
		c.work.Go(func() {
			c.cleanup.Sweep(c.life, resource, name)
			select {
			case c.left <- name:
			case <-c.life.Done():
			}
		})
	default: // a client that removes the finalizer itself wants to keep the objects
		c.withdraw(k)
		delete(c.known, name)
	}
}

// leave withdraws the API of a definition that is gone, after the sweep of its objects.
func (c *Controller) leave(name string) {
	k := c.known[name]
	if k == nil || !k.leaving {
		return
	}
	k.leaving = false
	delete(c.leaving, k)
	k.dirty = true // a new definition may have replaced it
	c.lookFor(k.served.resource.Group, k.served.names)
	c.withdraw(k)
	if k.crd == nil {
		delete(c.known, name)
	}
}
