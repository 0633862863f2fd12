// Package controller follows the stored definitions of a server, serves what they define, maintains their status, and deletes the
// objects of definitions that are being deleted.
//
// Every server of a storage has a [Controller]. All of them do the same work; what one has done, the others need not do. The
// goroutine of [Controller.Run] processes the definitions that have changed, and those that a change of names concerns. It
// accepts names, then serves the definitions, and then establishes them. Failed work is tried again.
package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/catalogue"
	"github.com/keelson-dev/keelson/server/crd/internal/cleanup"
	"github.com/keelson-dev/keelson/server/crd/internal/serving"
	"github.com/keelson-dev/keelson/server/crd/internal/stored"
	"github.com/keelson-dev/keelson/server/internal/background"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Controller manages the definitions of one server. Make one with New. All methods may be called concurrently.
type Controller struct {
	groups      *serving.Groups
	host        *server.Host
	catalogue   *catalogue.Catalogue
	definitions *stored.Definitions
	cleanup     *cleanup.Cleanup
	log         *zap.Logger
	shared      bool // whether other servers may use the storage

	trouble atomic.Pointer[error] // why the last watch of the definitions ended
	synced  chan struct{}         // closed when the definitions of the first list are served
	left    chan string           // names of definitions that are gone, after the sweep of their objects

	// The fields below belong to the goroutine of Run.
	life      context.Context // the context of Run
	work      sync.WaitGroup
	known     map[string]*known
	complete  bool                  // all definitions have been seen once
	seen      int64                 // the revision up to which changes were seen
	leaving   map[*known]bool       // the elements of known that are leaving
	namesakes map[string]*namesakes // the existing definitions, by group
	others    map[string]*used      // by group: the names of served resources that no definition defines
	changed   <-chan struct{}       // closed when others must be computed again
	retry     wait.Backoff
	retryAt   time.Time // when failed work is tried again; zero if nothing failed
}

// New returns a controller for a server that serves CustomResourceDefinitions. Call Run to start it. groups makes what
// definitions define. log receives failures that are tried again and definitions that cannot be served.
func New(h *server.Host, groups *serving.Groups, log *zap.Logger) (*Controller, error) {
	definitions, err := stored.New(h, log)
	if err != nil {
		return nil, err
	}
	return &Controller{
		groups: groups, definitions: definitions, cleanup: cleanup.New(h, definitions, log), host: h, catalogue: h.Catalogue(), log: log, shared: h.SharesStorage(),
		synced: make(chan struct{}), left: make(chan string), known: map[string]*known{}, leaving: map[*known]bool{}, namesakes: map[string]*namesakes{},
	}, nil
}

// Gate returns the admission plug-in for creates and deletes that Run needs.
func (c *Controller) Gate() admission.Mutator { return c.cleanup.Gate }

// Synced returns a channel that is closed when the definitions of the first list are served.
func (c *Controller) Synced() <-chan struct{} { return c.synced }

// Check is the health check. It returns nil once the definitions of the first list are served.
func (c *Controller) Check(context.Context) error {
	select {
	case <-c.synced:
		return nil
	default:
	}
	const yet = "the custom resources that are defined are not all served yet"
	if err := c.trouble.Load(); err != nil {
		return fmt.Errorf("%s: %w", yet, *err)
	}
	return errors.New(yet)
}

// Run works until ctx ends. Call it once.
func (c *Controller) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer c.work.Wait()
	defer cancel()
	c.life = ctx
	batches := make(chan background.Batch)
	c.work.Go(func() { c.follow(ctx, batches) })
	c.retry = background.Doubling(leastWait, mostWait)
	c.compareOthers()
	for {
		c.settle(ctx)
		again := c.nextRetry()
		select {
		case b := <-batches:
			c.observe(b)
			c.drain(batches)
		case <-c.changed:
			c.compareOthers()
		case name := <-c.left:
			c.leave(name)
		case <-again:
			c.retryDue()
		case <-ctx.Done():
			return
		}
	}
}

// settle processes dirty definitions until there are none.
func (c *Controller) settle(ctx context.Context) {
	if !c.complete {
		return
	}
	for ctx.Err() == nil {
		work := c.takeDirty()
		if len(work) == 0 {
			break
		}
		c.serve(established(work)) // first: established definitions keep their names, whatever happens to the others
		c.ready()
		for _, k := range work {
			c.name(ctx, k)
		}
		c.serve(work)
		for _, k := range work {
			c.establish(ctx, k)
			c.clean(ctx, k)
			k.dropSchemas()
		}
	}
	c.ready()
}
