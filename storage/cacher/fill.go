package cacher

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

const (
	maxReplay = 1 << 20 // maximum number of revisions that a new cache goes back
	maxRounds = 4       // maximum number of times to read the changes that happened while the cache was being filled
)

// load fills the cache with the oldest retained state, and with the changes since.
func (c *Cacher) load() (storage.Following, error) {
	began := time.Now()
	c.mu.Lock()
	if c.cut != nil {
		c.forget(c.cut)
	}
	c.mu.Unlock()
	target, err := c.below.Revision(c.life)
	if err != nil {
		return nil, err
	}
	oldest, err := c.below.Oldest(c.life)
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		at := max(oldest, target-c.replays())
		if attempt == 2 {
			at = 0
		}
		feed, err := c.loadAt(at, target, began)
		if attempt == 2 || !errors.Is(err, storage.ErrCompacted) {
			return feed, err
		}
		if oldest, err = c.below.Oldest(c.life); err != nil {
			return nil, err
		}
	}
}

// replays returns the maximum number of revisions that a new cache goes back. Readers wait while they are replayed.
func (c *Cacher) replays() int64 {
	if r, ok := c.below.(storage.Replayer); ok {
		return min(maxReplay, r.Replay())
	}
	return maxReplay
}

// loadAt fills the cache with the state at a revision, 0 being the latest, and the changes since, up to target.
func (c *Cacher) loadAt(at, target int64, began time.Time) (storage.Following, error) {
	from, err := c.below.State(c.life, at)
	if err != nil {
		return nil, err
	}
	feed, err := c.below.Follow(c.life, from.Revision) // brings the changes that happen while the state is read
	if err != nil {
		return nil, err
	}
	m := &entries{fields: c.opts.IndexFields, labels: c.opts.IndexLabels}
	var all []*entry
	for e, err := range from.Entries {
		if err != nil {
			feed.Close()
			return nil, err
		}
		all = append(all, m.entry(e))
	}
	c.mu.Lock()
	c.entries = m
	c.edition = c.newEdition()
	c.state = c.built(all)
	c.log.reset(from.Revision)
	c.mu.Unlock()
	// Filling takes a while: the cache must not show an older state than others have shown meanwhile.
	reached := from.Revision
	for range maxRounds {
		if reached, err = c.replay(feed, reached, target); err == nil {
			target, err = c.below.Revision(c.life)
		}
		if err != nil {
			feed.Close()
			return nil, err
		}
		if target <= reached {
			break
		}
	}
	c.filled(feed, reached, began)
	return feed, nil
}

// replay applies the changes after a revision, up to target, and returns the revision reached. It lowers the target when the
// store was set back below it.
func (c *Cacher) replay(feed storage.Following, from, target int64) (reached int64, err error) {
	for reached = from; reached < target; {
		feed.RequestProgress()
		moves, err := feed.Next(c.life)
		if err != nil {
			return 0, err
		}
		if moves.Progress < target && len(moves.Moves) == 0 {
			now, err := c.below.Revision(c.life)
			switch {
			case err != nil:
				return 0, err
			case now < from:
				return 0, fmt.Errorf("the store is at revision %d, and was at %d", now, from)
			}
			target = min(target, now)
			time.Sleep(time.Millisecond) // a member of the store may be behind: pause before the next read
		}
		c.mu.Lock()
		c.apply(moves.Moves)
		c.trim()
		c.mu.Unlock()
		c.nudgeWoken()
		reached = max(reached, moves.Progress)
	}
	return reached, nil
}

// built makes a state of all entries, which come in key order.
func (c *Cacher) built(all []*entry) state {
	s := newState(c.opts)
	var broken []*entry
	for _, e := range all {
		s.count(e, 1)
		if e.unreadable != nil {
			broken = append(broken, e)
		}
	}
	s.records = build(byKey, c.edition, slices.Values(all))
	s.unreadable = build(byKey, c.edition, slices.Values(broken))
	for i := range s.indexes {
		listed := slices.DeleteFunc(slices.Clone(all), func(e *entry) bool { return e.unreadable != nil || !e.values[i].ok })
		slices.SortFunc(listed, byValue(i))
		s.indexes[i] = build(byValue(i), c.edition, slices.Values(listed))
	}
	return s
}
