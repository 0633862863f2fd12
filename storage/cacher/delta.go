package cacher

import (
	"context"
	"iter"
	"math"
	"slices"

	"github.com/keelson-dev/keelson/storage"
)

// Delta implements storage.Differ. Without a change it allocates nothing and takes no lock.
func (c *Cacher) Delta(ctx context.Context, since int64, at storage.Read) (storage.Delta, error) {
	epoch := c.epoch.Load()
	s, err := c.stateFor(ctx, at)
	if err == nil && s != nil && at.Match == storage.Acknowledged && s.revision < since && since <= c.known.Load() {
		s, err = c.stateSince(ctx, since) // the storage below served the caller before, and was ahead of the cache
	}
	switch {
	case err != nil:
		return storage.Delta{}, err
	case s == nil:
		return c.deltaBelow(ctx, at)
	}
	revision := s.revision
	if at.Match == storage.Exact {
		revision = at.Revision
	}
	if since <= c.setBack.Load() || since > revision { // 0 is never above the revision
		return s.reset(revision), nil
	}
	if since >= s.changed {
		return storage.Delta{Revision: revision}, nil
	}
	changes, ok := c.between(since, s.changed, epoch)
	if !ok {
		return s.reset(revision), nil
	}
	last := lastOf(changes)
	return storage.Delta{Revision: revision, Moves: moves(last), Count: len(last)}, nil
}

// deltaBelow returns a Delta from the storage below.
func (c *Cacher) deltaBelow(ctx context.Context, at storage.Read) (storage.Delta, error) {
	before := c.epoch.Load()
	d, err := storage.Whole(ctx, c.below, askedBelow(at))
	if err == nil {
		c.know(before, d.Revision)
	}
	return d, err
}

// between returns the changes after since up to until, which the cache has reached. ok is false if the cache does not have
// them, or has a later epoch.
func (c *Cacher) between(since, until, epoch int64) ([]*change, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.loaded || epoch != c.epoch.Load() || since < c.log.floor {
		return nil, false
	}
	changes := c.log.read(nil, since, math.MaxInt)
	return changes[:after(changes, until)], true
}

// lastOf returns the last change of each key.
func lastOf(changes []*change) []*change {
	if len(changes) < 2 {
		return changes
	}
	seen := make(map[string]struct{}, len(changes))
	last := changes[:0:0]
	for _, ch := range slices.Backward(changes) {
		if _, later := seen[ch.key()]; !later {
			seen[ch.key()] = struct{}{}
			last = append(last, ch)
		}
	}
	return last
}

func moves(changes []*change) iter.Seq[storage.Move] {
	return func(yield func(storage.Move) bool) {
		for _, ch := range changes {
			m := storage.Move{Deleted: ch.is == nil}
			if m.Deleted {
				m.Record = storage.Record{Key: ch.key(), Revision: ch.revision}
			} else {
				m.Entry = ch.is.stored()
			}
			if !yield(m) {
				return
			}
		}
	}
}

// stored returns an entry in the form of package storage.
func (e *entry) stored() storage.Entry {
	return storage.Entry{Record: e.Record, Unreadable: e.unreadable}
}

// reset returns the Delta with all records of a state.
func (s *snapshot) reset(revision int64) storage.Delta {
	n := s.records.len()
	return storage.Delta{Revision: revision, Reset: true, Count: n, Moves: func(yield func(storage.Move) bool) {
		s.records.walk(0, n, func(e *entry) bool { return yield(storage.Move{Entry: e.stored()}) })
	}}
}
