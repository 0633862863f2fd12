package controller

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/watch"
)

// drain processes all waiting batches, so that many changes at once are served together.
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

// follow watches the definitions until ctx ends. When the watch ends, it starts a new one.
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

// observe updates known.
func (c *Controller) observe(b background.Batch) {
	for _, e := range b.Events {
		c.seen = max(c.seen, e.Record.Revision)
		switch e.Type {
		case watch.Bookmark:
		case watch.Deleted:
			c.gone(e.Record.Key, e.Record)
		default:
			if k := c.known[e.Record.Key]; k != nil && k.crd != nil && k.revision == e.Record.Revision {
				k.dirty = true // this server wrote this state; now the watch has reported it
				continue
			}
			crd, err := c.definitions.Decode(e.Record)
			if err != nil {
				c.log.Error("a definition cannot be read", zap.String("name", e.Record.Key), zap.Error(err))
				continue
			}
			if k := c.known[e.Record.Key]; k != nil && k.crd != nil && k.crd.UID != crd.UID {
				c.gone(e.Record.Key, storage.Record{}) // it was deleted and created again while there was no watch
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
