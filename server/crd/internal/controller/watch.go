package controller

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/watch"
)

// drain takes what has come meanwhile, so that much that comes together is served together.
func (c *Controller) drain(batches <-chan background.Batch) {
	for {
		select {
		case b := <-batches:
			c.observe(b)
		default:
			return
		}
	}
}

// follow watches the definitions until ctx ends; when the watch ends it begins again.
func (c *Controller) follow(ctx context.Context, out chan<- background.Batch) {
	seen := func(b background.Batch) {
		b.Events = slices.Clone(b.Events)
		select {
		case out <- b:
		case <-ctx.Done():
		}
	}
	background.Follow(ctx, background.Doubling(leastWait, mostWait), c.definitions.Watch, seen, func(err error) {
		c.trouble.Store(&err)
		c.log.Debug("the watch of definitions begins again", zap.Error(err))
	})
}

// observe keeps known up to date.
func (c *Controller) observe(b background.Batch) {
	for _, e := range b.Events {
		c.seen = max(c.seen, e.Record.Revision)
		switch e.Type {
		case watch.Bookmark:
		case watch.Deleted:
			c.gone(e.Record.Key, e.Record)
		default:
			if k := c.known[e.Record.Key]; k != nil && k.crd != nil && k.revision == e.Record.Revision {
				k.dirty = true // that this was written here, seen now
				continue
			}
			crd, err := c.definitions.Decode(e.Record)
			if err != nil {
				c.log.Error("a definition cannot be read", zap.String("name", e.Record.Key), zap.Error(err))
				continue
			}
			if k := c.known[e.Record.Key]; k != nil && k.crd != nil && k.crd.UID != crd.UID {
				c.gone(e.Record.Key, storage.Record{}) // it went and came while nobody watched
			}
			c.update(crd, e.Record.Revision)
		}
	}
	if b.Present != nil {
		for name, k := range c.known {
			if !b.Present[name] && k.crd != nil {
				c.gone(name, storage.Record{})
			}
		}
		c.complete = true
	}
}
