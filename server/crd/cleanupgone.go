package crd

import (
	"context"

	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// gone forgets a definition that is gone, whose names become free. last is how it was last; zero: nobody saw that.
func (c *controller) gone(name string, last storage.Record) {
	k := c.known[name]
	if k == nil || k.crd == nil {
		return
	}
	was := k.crd
	if !last.Body.IsZero() {
		obj, err := c.registry.Decode(last)
		if crd, err := definitionOf(obj, err); err == nil {
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
		c.gate.watch(resource, true)
		c.work.Go(func() { c.sweep(c.life, resource, name) })
	default: // who took the finalizer away by hand wants to keep the objects
		c.withdraw(k)
		delete(c.known, name)
	}
}

// leave withdraws what a definition defined that is gone, after the last of its objects.
func (c *controller) leave(name string) {
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

// sweep deletes what creates of this server left after another had seen the last object go, and says that it is done. If there
// is a definition of that name again, what is there may be that one's, and stays.
func (c *controller) sweep(ctx context.Context, resource schema.GroupResource, name string) {
	if err := c.sweepOnce(ctx, resource, name); err != nil && ctx.Err() == nil {
		c.log.Warn("objects of a definition that is gone could not be looked for", zap.String("name", name), zap.Error(err))
	}
	select {
	case c.left <- name:
	case <-ctx.Done():
	}
}

func (c *controller) sweepOnce(ctx context.Context, resource schema.GroupResource, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := c.gate.wait(ctx, resource); err != nil {
		return err
	}
	found, err := c.instances(ctx, resource)
	if err != nil || len(found.alive) == 0 {
		return err
	}
	// After the list: what it shows was there before a definition that is made now.
	if _, err = c.registry.GetStored(as(ctx, ""), name); apierrors.IsNotFound(err) {
		err = found.deleteAlive(ctx)
	}
	return err
}
