package crd

import (
	"context"

	"github.com/keelson-dev/keelson/server/internal/background"
)

// run works until ctx ends.
func (c *controller) run(ctx context.Context) {
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
func (c *controller) settle(ctx context.Context) {
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
