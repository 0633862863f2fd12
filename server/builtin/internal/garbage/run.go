package garbage

import (
	"context"

	"github.com/keelson-dev/keelson/server/catalogue"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Run collects garbage until ctx ends, and returns nil when all its goroutines have ended. Its calls have the values of ctx, for
// example the user for admission. It may be called again, and then starts from the beginning. Several calls at once, in one
// process or several, are useless but harmless.
//
// A graph of objects and references receives every change of metadata, and determines which objects to examine. The graph may be
// behind the storage. So an examination reads the object and its owners from the storage and relies only on that.
//
// Before the finalizer of an owner is removed, the kinds that may have dependents of it are listed. The reason is that the
// watches of different kinds are not synchronized, and a dependent that was written before its owner was deleted must not be
// missed. One sweep over the kinds serves all owners that need it at about the same time. It also finds out which of their
// dependents have dependents themselves.
func (c *Collector) Run(ctx context.Context) error {
	r := &run{
		worker:   newWorker(c.opts.Logger, c.opts.Hooks, atOnce),
		log:      c.opts.Logger,
		queue:    newQueue(),
		wake:     make(chan struct{}, 1),
		watchers: map[*kind]context.CancelFunc{},
		watched:  map[schema.GroupResource]*catalogue.Objects{},
	}
	r.background.Go(func() { r.dispatch(ctx) })
	r.follow(ctx, c.opts.Catalogue)
	r.background.Wait()
	return nil
}
