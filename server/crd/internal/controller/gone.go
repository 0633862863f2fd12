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

// clean begins to delete the objects of a definition that is being deleted, unless that is under way.
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

// gone forgets a definition that is gone, whose names become free. last is how it was last; zero: nobody saw that.
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
	default: // who took the finalizer away by hand wants to keep the objects
		c.withdraw(k)
		delete(c.known, name)
	}
}

// leave withdraws what a definition defined that is gone, after the last of its objects.
func (c *Controller) leave(name string) {
	k := c.known[name]
	if k == nil || !k.leaving {
		return
	}
	k.leaving = false
	delete(c.leaving, k)
	k.dirty = true // what has come in its place
	c.lookFor(k.served.resource.Group, k.served.names)
	c.withdraw(k)
	if k.crd == nil {
		delete(c.known, name)
	}
}
