package cacher

import (
	"context"
	"errors"

	"github.com/keelson-dev/keelson/storage"
)

// now returns the store's revision, and checks whether it is lower than before.
func (c *Cacher) now(ctx context.Context) (int64, error) {
	before := c.mark()
	revision, ok := c.below.Known()
	if !ok {
		var err error
		if revision, err = c.latest.get(ctx, c.fly); err != nil {
			return 0, err
		}
	}
	c.compare(before, revision)
	c.know(before.epoch, revision)
	return revision, nil
}

// stateFor returns the state that at selects; nil when the storage below has to serve the read.
func (c *Cacher) stateFor(ctx context.Context, at storage.Read) (*snapshot, error) {
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	switch at.Match {
	case storage.Latest:
		now, err := c.now(ctx)
		if err != nil {
			return nil, err
		}
		s, err := c.reach(ctx, now)
		if errors.Is(err, errLate) {
			s, err = nil, nil
		}
		c.opts.Hooks.consistent(s != nil, s == nil && err == nil)
		return s, err
	case storage.NotOlderThan:
		s, err := c.stateSince(ctx, at.Revision)
		if s != nil && s.changed != c.changed.Load() { // readers without a lock get a state that is new enough, but not the latest
			s = c.newest()
		}
		return s, err
	case storage.Exact:
		return c.stateAt(ctx, at.Revision)
	case storage.Acknowledged:
		return c.acknowledged(ctx)
	}
	return c.newest(), nil
}

// stateSince returns a state at a revision or a later one; nil when the storage below has to serve the read.
func (c *Cacher) stateSince(ctx context.Context, revision int64) (*snapshot, error) {
	s, err := c.reach(ctx, revision)
	if !errors.Is(err, errLate) {
		return s, err
	}
	now, err := c.now(ctx)
	if err == nil && now < revision {
		err = &storage.FutureError{Requested: revision, Current: now}
	}
	return nil, err
}

// stateAt returns the state at a revision; nil when the storage below has to serve the read.
func (c *Cacher) stateAt(ctx context.Context, revision int64) (*snapshot, error) {
	if revision <= 0 {
		return nil, nil
	}
	s, err := c.stateSince(ctx, revision)
	if s == nil || err != nil || s.changed <= revision {
		return s, err
	}
	return c.older(revision), nil
}

// acknowledged returns the latest state, which has all writes that were acknowledged before the call; nil when the storage
// below has to serve the read.
func (c *Cacher) acknowledged(ctx context.Context) (*snapshot, error) {
	want := c.writes.highest.Load()
	if s := c.published.Load(); s != nil && s.revision >= want && s.changed == c.changed.Load() {
		return s, nil
	}
	if c.reached.Load() >= want {
		return c.newest(), nil
	}
	s, err := c.reach(ctx, want)
	if !errors.Is(err, errLate) {
		return s, err
	}
	now, err := c.now(ctx)
	if err == nil && now < want {
		c.writes.highest.CompareAndSwap(want, now) // the write was acknowledged before the store was set back, and recorded after that
	}
	return nil, err
}
