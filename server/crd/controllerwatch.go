package crd

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/watch"
)

// drain takes what has come meanwhile, so that much that comes together is served together.
func (c *controller) drain(batches <-chan batch) {
	for {
		select {
		case b := <-batches:
			c.observe(b)
		default:
			return
		}
	}
}

// batch is events of the watch that came together.
type batch struct {
	events []storage.Event
	// present names all definitions, at the end of the first events of a watch; nil otherwise.
	present map[string]bool
}

// follow watches the definitions until ctx ends; when the watch ends it begins again.
func (c *controller) follow(ctx context.Context, out chan<- batch) {
	retry := doubling(mostWait)
	for ctx.Err() == nil {
		err := c.followOnce(ctx, out, func() { retry = doubling(mostWait) })
		if ctx.Err() != nil {
			return
		}
		c.trouble.Store(&err)
		c.log.Debug("the watch of definitions begins again", zap.Error(err))
		pause(ctx, retry.Step())
	}
}

func (c *controller) followOnce(ctx context.Context, out chan<- batch, began func()) error {
	w, err := c.registry.WatchRecords(as(ctx, ""), storage.WatchOptions{Initial: true})
	if err != nil {
		return err
	}
	defer w.Close()
	present := map[string]bool{}
	for {
		events, err := w.Next(ctx)
		if err != nil {
			return err
		}
		b := batch{events: slices.Clone(events)}
		for _, e := range events {
			if present == nil {
				break
			}
			if e.Type != watch.Bookmark {
				present[e.Record.Key] = true
			} else if e.InitialEnd {
				b.present, present = present, nil
				began()
			}
		}
		select {
		case out <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// observe keeps known up to date.
func (c *controller) observe(b batch) {
	for _, e := range b.events {
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
			obj, err := c.registry.Decode(e.Record)
			crd, err := definitionOf(obj, err)
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
	if b.present != nil {
		for name, k := range c.known {
			if !b.present[name] && k.crd != nil {
				c.gone(name, storage.Record{})
			}
		}
		c.complete = true
	}
}
