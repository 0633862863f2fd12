package garbage

import (
	"context"

	"github.com/keelson-dev/keelson/server/catalogue"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Run collects until ctx ends, and returns nil when all its goroutines have ended. What it does carries the values of ctx,
// such as the user that admission is to see. It may be called again, which begins from nothing, and any number of times
// at once, in one process or several, which is of no use and does no harm.
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
