// Package controller follows the stored definitions of a server, has it serve what they define, keeps their status, and deletes the
// objects of those that are being deleted.
//
// Every server of a storage has a [Controller]; they do the same things, and what one has done already is nothing to do for another.
// One goroutine, that of [Controller.Run], looks at the definitions that have changed, and at those that others' names concern: it
// accepts names, serves, and says that they are established, in this order. What fails is tried again.
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

// Controller looks after the definitions of one server. Make one with New. All methods may be called concurrently.
type Controller struct {
	groups      *serving.Groups
	host        *server.Host
	catalogue   *catalogue.Catalogue
	definitions *stored.Definitions
	cleanup     *cleanup.Cleanup
	log         *zap.Logger
	shared      bool // there may be other servers of the storage

	trouble atomic.Pointer[error] // why the last watch of the definitions ended
	synced  chan struct{}         // closed when all definitions found first are served
	left    chan string           // names of definitions that are gone, and of whose objects nothing is left either

	// What follows belongs to the goroutine of Run.
	life      context.Context // that of Run
	work      sync.WaitGroup
	known     map[string]*known
	complete  bool                  // all definitions have been seen once
	seen      int64                 // the revision up to which changes were seen
	leaving   map[*known]bool       // those of known that are
	namesakes map[string]*namesakes // the definitions that there are, by group
	others    map[string]*used      // by group: the names of resources that are served and not defined
	changed   <-chan struct{}       // closed when others is to be looked at anew
	retry     wait.Backoff
	retryAt   time.Time // when what failed is tried again; zero: nothing failed
}

// New returns a controller that is yet to run, for a server that serves the definitions' own kind. groups makes what definitions
// define. log gets what fails and is tried again, and definitions that cannot be served.
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

// Gate is the admission plug-in for creates and deletes that Run needs.
func (c *Controller) Gate() admission.Mutator { return c.cleanup.Gate }

// Synced is closed when all definitions that were found first are served.
func (c *Controller) Synced() <-chan struct{} { return c.synced }

// Check is the health check: nil from the time on at which all definitions that were found first are served.
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

// Run works until ctx ends. It is called once.
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

// settle does what there is to do for the definitions to be looked at, until there are none.
func (c *Controller) settle(ctx context.Context) {
	if !c.complete {
		return
	}
	for ctx.Err() == nil {
		work := c.takeDirty()
		if len(work) == 0 {
			break
		}
		c.serve(established(work)) // first of all: their names are theirs, whatever happens to the others
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
