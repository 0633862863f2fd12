package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	"github.com/keelson-dev/keelson/server/crd/internal/stored"
	"github.com/keelson-dev/keelson/server/internal/background"
	"go.uber.org/zap"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// goneWithin is how long finalizers may hold the objects of a definition before its condition reports it.
const goneWithin = time.Minute

// Failed work is tried again after a delay that grows from leastWait to mostWait.
const (
	leastWait = 50 * time.Millisecond
	mostWait  = 10 * time.Second
)

// reserved reports whether a resource is one whose objects never belong to a definition, as in kube-apiserver.
func reserved(resource schema.GroupResource) bool {
	return resource == stored.Resource() || resource == schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
}

// deletion is the deletion of one definition.
type deletion struct {
	*Cleanup
	Definition
	stage definition.Deletion // the stage that the condition had last
}

// run calls pass until it succeeds, the definition is gone, or ctx ends.
func (d *deletion) run(ctx context.Context) {
	retry := background.Doubling(leastWait, mostWait)
	for failures := 0; ; failures++ {
		err := d.pass(ctx)
		if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) {
			return
		}
		if failures == 0 {
			d.log.Warn("a definition cannot be deleted yet", zap.String("name", d.Name), zap.Error(err))
		}
		background.Pause(ctx, retry.Step())
	}
}

// pass does the whole deletion once.
func (d *deletion) pass(ctx context.Context) error {
	stage := definition.NeverEstablished
	switch {
	case d.Overlaps || reserved(d.Resource):
		stage = definition.OverlapsBuiltIn
	case d.Served:
		if err := d.deleteObjects(ctx); err != nil {
			return err
		}
		if d.Established {
			stage = definition.DeletionCompleted
		}
	}
	// The condition says that the objects are gone before the definition is removed. By this condition servers distinguish a
	// definition whose remaining objects are to be deleted from one whose finalizer a client removed.
	if err := d.tell(ctx, stage, ""); err != nil {
		return err
	}
	_, _, err := d.definitions.WriteStatus(ctx, d.Name, d.UID, func(crd *apiextensionsv1.CustomResourceDefinition, _ metav1.Time) bool {
		crd.Finalizers = slices.DeleteFunc(crd.Finalizers, func(f string) bool { return f == apiextensionsv1.CustomResourceCleanupFinalizer })
		return true
	})
	return err
}

// tell updates the condition Terminating.
func (d *deletion) tell(ctx context.Context, stage definition.Deletion, detail string) error {
	if d.stage == stage && detail == "" {
		return nil
	}
	_, _, err := d.definitions.WriteStatus(ctx, d.Name, d.UID, func(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) bool {
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

// deleteObjects deletes all objects and returns when there are none. The condition reports failures.
func (d *deletion) deleteObjects(ctx context.Context) error {
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

// deleteAll deletes all objects. It returns the objects that finalizers hold, or nil if there are none.
func (d *deletion) deleteAll(ctx context.Context) (*instances, error) {
	if err := d.Gate.wait(ctx, d.Resource); err != nil {
		return nil, err
	}
	var vanished map[types.UID]error
	for {
		found, err := d.instances(ctx, d.Resource)
		switch {
		case err != nil:
			return nil, fmt.Errorf("could not list instances: %w", err)
		case len(found.alive) == 0 && len(found.held) == 0:
			return nil, nil
		case len(found.alive) == 0:
			return found, nil
		}
		err = found.notGone(vanished)
		if err == nil {
			err = found.deleteAlive(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("could not issue all deletes: %w", err)
		}
		vanished = found.vanished
	}
}
