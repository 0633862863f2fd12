// Package cleanup deletes the objects of definitions that are being deleted, and lets these go when there are none left.
//
// A [Gate] is the admission plug-in that refuses creates of such objects, and knows those that are under way: [Cleanup.Run] waits
// for them, deletes all objects as the user system:apiserver, waits for those that are held by finalizers, and keeps the condition
// Terminating. Then it takes the finalizer customresourcecleanup.apiextensions.k8s.io away. It may be cut off at any point and run
// again, and several servers may do so at the same time. What another server let in while the last object went is left to
// [Cleanup.Sweep].
package cleanup

import (
	"context"

	"github.com/keelson-dev/keelson/server/crd/internal/stored"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Definition is one that is being deleted.
type Definition struct {
	Name        string
	UID         types.UID
	Resource    schema.GroupResource
	Established bool
	Served      bool // it may have objects
	Overlaps    bool // they would be those of somebody else
}

// Cleanup deletes objects for one server. All methods may be called concurrently.
type Cleanup struct {
	// Gate guards the resources of definitions.
	Gate *Gate

	kinds       Kinds
	definitions *stored.Definitions
	log         *zap.Logger
	deletes     chan struct{} // holds a token for each object that is being deleted
}

// New returns a Cleanup. log gets what fails and is tried again.
func New(kinds Kinds, definitions *stored.Definitions, log *zap.Logger) *Cleanup {
	return &Cleanup{Gate: &Gate{definitions: definitions}, kinds: kinds, definitions: definitions, log: log, deletes: make(chan struct{}, maxDeletes)}
}

// Run deletes the objects of a definition and lets it go. It tries until it is done, the definition is gone, or ctx ends.
func (c *Cleanup) Run(ctx context.Context, of Definition) {
	d := &deletion{Cleanup: c, Definition: of}
	d.run(ctx)
}

// Sweep deletes what creates of this server left of a definition that is gone after another server had seen the last object go. If
// there is a definition of that name again, what is there may be that one's, and stays.
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
	// After the list: what it shows was there before a definition that is made now.
	if _, err = c.definitions.Record(ctx, name); apierrors.IsNotFound(err) {
		err = found.deleteAlive(ctx)
	}
	return err
}
