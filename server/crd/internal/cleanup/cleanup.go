// Package cleanup deletes the objects of definitions that are being deleted, and removes these definitions when no object is
// left.
//
// A [Gate] is the admission plug-in that refuses creates of such objects and counts the creates in flight. [Cleanup.Run] waits
// for these creates, deletes all objects as the user system:apiserver, waits for objects that finalizers hold, and maintains the
// condition Terminating. Then it removes the finalizer customresourcecleanup.apiextensions.k8s.io. It may be interrupted at any
// point and run again, and several servers may run it at the same time. [Cleanup.Sweep] deletes objects that creates on this
// server added while another server deleted the last object.
package cleanup

import (
	"context"

	"github.com/keelson-dev/keelson/server/crd/internal/stored"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Definition describes a definition that is being deleted.
type Definition struct {
	Name        string               // the name of the definition
	UID         types.UID            // its uid
	Resource    schema.GroupResource // the resource that it defines
	Established bool                 // whether it was established
	Served      bool                 // whether it may have objects
	Overlaps    bool                 // whether something else serves the resource, so that the objects are not those of the definition
}

// Cleanup deletes objects for one server. All methods may be called concurrently.
type Cleanup struct {
	// Gate is the admission plug-in that guards the resources of definitions.
	Gate *Gate

	kinds       Kinds
	definitions *stored.Definitions
	log         *zap.Logger
	deletes     chan struct{} // holds a token for each object that is being deleted
}

// New returns a Cleanup with its Gate. log receives failures that are tried again.
func New(kinds Kinds, definitions *stored.Definitions, log *zap.Logger) *Cleanup {
	return &Cleanup{Gate: &Gate{definitions: definitions}, kinds: kinds, definitions: definitions, log: log, deletes: make(chan struct{}, maxDeletes)}
}

// Run deletes the objects of a definition and then removes the finalizer of the definition. It returns when that is done, the
// definition is gone, or ctx ends.
func (c *Cleanup) Run(ctx context.Context, of Definition) {
	d := &deletion{Cleanup: c, Definition: of}
	d.run(ctx)
}

// Sweep deletes the remaining objects of a definition that is gone. Creates on this server may have added them after another
// server had deleted the last object that it found. If there is a new definition of that name, the objects may belong to it and
// are kept.
func (c *Cleanup) Sweep(ctx context.Context, resource schema.GroupResource, name string) {
	if err := c.sweep(ctx, resource, name); err != nil && ctx.Err() == nil {
		c.log.Warn("objects of a definition that is gone could not be looked for", zap.String("name", name), zap.Error(err))
	}
}

func (c *Cleanup) sweep(ctx context.Context, resource schema.GroupResource, name string) error {
	ctx, cancel := context.WithTimeout(ctx, stored.CallTimeout)
	defer cancel()
	if err := c.Gate.wait(ctx, resource); err != nil {
		return err
	}
	found, err := c.instances(ctx, resource)
	if err != nil || len(found.alive) == 0 {
		return err
	}
	// This read comes after the list: the listed objects are older than a definition that is created now.
	if _, err = c.definitions.Record(ctx, name); apierrors.IsNotFound(err) {
		err = found.deleteAlive(ctx)
	}
	return err
}
