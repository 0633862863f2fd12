package crd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	"go.uber.org/zap"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// goneWithin is how long the objects of a definition may take to go, held by their finalizers, before its condition says so.
const goneWithin = time.Minute

// clean begins to delete the objects of a definition that is being deleted, unless that is under way.
func (c *controller) clean(ctx context.Context, k *known) {
	if k.cleaning != nil || k.crd.DeletionTimestamp == nil || !slices.Contains(k.crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return
	}
	d := &cleanup{
		c: c, name: k.crd.Name, uid: k.crd.UID, resource: resourceOf(k.crd),
		established: definition.IsTrue(k.crd, apiextensionsv1.Established),
		served:      k.served != nil || definition.IsTrue(k.crd, apiextensionsv1.Established),
		overlaps:    reserved(resourceOf(k.crd)) || c.isTaken(k.crd) != "",
	}
	ctx, k.cleaning = context.WithCancel(ctx)
	c.work.Go(func() { d.run(ctx) })
}

// resourceOf returns the resource of a definition.
func resourceOf(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupResource {
	return schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
}

// reserved reports whether a resource is one whose objects are never those of a definition, as in kube-apiserver.
func reserved(resource schema.GroupResource) bool {
	return resource == definitions() || resource == schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
}

// cleanup deletes the objects of one definition that is being deleted, and lets it go. It begins anew when it is cut off, and
// several servers may do it at the same time.
type cleanup struct {
	c           *controller
	name        string
	uid         types.UID
	resource    schema.GroupResource
	established bool
	served      bool // it may have objects
	overlaps    bool // they would be those of somebody else

	stage definition.Deletion // what the condition was told last
}

// run tries until it is done, the definition is gone, or ctx ends.
func (d *cleanup) run(ctx context.Context) {
	retry := doubling(mostWait)
	for failures := 0; ; failures++ {
		err := d.pass(ctx)
		if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) {
			return
		}
		if failures == 0 {
			d.c.log.Warn("a definition cannot be deleted yet", zap.String("name", d.name), zap.Error(err))
		}
		pause(ctx, retry.Step())
	}
}

// pass does all of it once.
func (d *cleanup) pass(ctx context.Context) error {
	stage := definition.NeverEstablished
	switch {
	case d.overlaps:
		stage = definition.OverlapsBuiltIn
	case d.served:
		if err := d.deleteObjects(ctx); err != nil {
			return err
		}
		if d.established {
			stage = definition.DeletionCompleted
		}
	}
	// That they are gone is told before the definition is: by it servers know a definition whose objects are to go from one
	// that somebody let go by hand.
	if err := d.tell(ctx, stage, ""); err != nil {
		return err
	}
	_, _, err := d.c.writeStatus(ctx, d.name, d.uid, func(crd *apiextensionsv1.CustomResourceDefinition, _ metav1.Time) bool {
		crd.Finalizers = slices.DeleteFunc(crd.Finalizers, func(f string) bool { return f == apiextensionsv1.CustomResourceCleanupFinalizer })
		return true
	})
	return err
}

// tell keeps the condition Terminating.
func (d *cleanup) tell(ctx context.Context, stage definition.Deletion, detail string) error {
	if d.stage == stage && detail == "" {
		return nil
	}
	_, _, err := d.c.writeStatus(ctx, d.name, d.uid, func(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) bool {
		if c := definition.Condition(crd, apiextensionsv1.Terminating); c != nil && c.Reason == string(definition.DeletionCompleted) {
			return false // another server was faster
		}
		return definition.SetTerminating(crd, stage, detail, now)
	})
	if err == nil {
		d.stage = stage
	}
	return err
}

// deleteObjects deletes all objects, and returns when there are none. What fails is told in the condition.
func (d *cleanup) deleteObjects(ctx context.Context) error {
	if d.stage == "" {
		if err := d.tell(ctx, definition.DeletionInProgress, ""); err != nil {
			return err
		}
	}
	for late := time.Now().Add(goneWithin); ; {
		left, err := d.deleteAll(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return errors.Join(err, d.tell(ctx, definition.DeletionFailed, err.Error()))
		case left == nil:
			return nil
		}
		stage, detail := definition.DeletionInProgress, ""
		until := late
		if !time.Now().Before(late) {
			stage, detail = definition.DeletionCheck, context.DeadlineExceeded.Error()
			until = time.Now().Add(goneWithin)
		}
		if stage != d.stage {
			if err := d.tell(ctx, stage, detail); err != nil {
				return err
			}
		}
		if err := left.wait(ctx, until); err != nil {
			return err
		}
	}
}

// deleteAll deletes all objects there are. It returns those that are left; nil: none.
func (d *cleanup) deleteAll(ctx context.Context) (*instances, error) {
	if err := d.c.gate.wait(ctx, d.resource); err != nil {
		return nil, err
	}
	for {
		found, err := d.c.instances(ctx, d.resource)
		switch {
		case err != nil:
			return nil, fmt.Errorf("could not list instances: %w", err)
		case len(found.alive) == 0 && len(found.held) == 0:
			return nil, nil
		case len(found.alive) == 0:
			return found, nil
		}
		if err := found.deleteAlive(ctx); err != nil {
			return nil, fmt.Errorf("could not issue all deletes: %w", err)
		}
	}
}
