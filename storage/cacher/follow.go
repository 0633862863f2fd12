package cacher

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

const (
	beatPeriod = 10 * time.Second // how often an idle storage below is asked for progress
	staleAfter = 3 * beatPeriod   // without news for so long the cache is not fresh

	// The pause between two attempts to fill the cache.
	minPause = 10 * time.Millisecond
	maxPause = 2 * time.Second
)

// start begins to fill the cache and to follow the storage below.
func (c *Cacher) start() {
	c.begin.Do(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ending {
			return
		}
		c.loading, c.empty = make(chan struct{}), time.Now()
		c.follower.again = c.again
		c.working.Go(c.run)
	})
}

// fly runs f in a goroutine that Close waits for; it returns false after Close.
func (c *Cacher) fly(f func(context.Context)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return false
	}
	c.working.Go(func() { f(c.life) })
	return true
}

// failed records the error of a feed of the storage below, or, if feed is nil, of an attempt to get one. Callers that wait
// for the cache to be filled stop waiting. An error of a feed that is void already is ignored. closed reports whether the
// storage below is closed: nothing will follow.
func (c *Cacher) failed(feed storage.Following, err error) (closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil || feed != nil && feed != c.feed {
		return false
	}
	c.feed = nil
	if c.loaded && errors.Is(err, storage.ErrCompacted) {
		c.void(fmt.Errorf("changes were compacted before they were seen: %w", err))
		return false
	}
	c.problem = err
	c.doneLoading()
	var unreadable *storage.UnreadableError
	c.hopeless = errors.As(err, &unreadable)
	switch {
	case errors.Is(err, storage.ErrClosed):
		c.forget(err)
		return true
	case c.loaded && c.hopeless: // a storage that is no storage.Source cannot continue
		c.loaded, c.cut = false, err
		c.published.Store(nil)
		c.changed.Store(0)
		c.idle.each(func(w *watcher) { w.nudge() })
	}
	return false
}

// void begins a new cache, because the state shown so far is not the store's. The caller holds mu.
func (c *Cacher) void(why error) {
	if !c.loaded {
		return
	}
	if c.feed != nil {
		c.feed.Close()
	}
	c.forget(nil)
	c.problem = why
	c.loading = make(chan struct{})
	c.opts.Hooks.void(why)
}

// forget empties the cache and ends all watches: with ended, or with an ExpiredError if ended is nil. The caller holds mu.
func (c *Cacher) forget(ended error) {
	if c.loaded {
		c.empty = time.Now()
	}
	c.loaded, c.ended, c.cut, c.feed, c.hopeless = false, ended, nil, nil, false
	c.published.Store(nil)
	c.changed.Store(0)
	c.reminder = reminder{}
	c.reached.Store(0)
	c.known.Store(0)
	c.epoch.Add(1)
	c.state.records.leave(c.edition)
	c.state, c.entries, c.recent = state{}, nil, nil
	c.log.reset(0)
	for _, w := range c.waiters {
		w.state <- nil
	}
	c.waiters, c.asking = nil, nil
	c.progress.asked = false
	c.idle.each(func(w *watcher) { w.nudge() })
	c.idle = idle{}
}

// mark has the epoch of the cache, and the revision that it had reached, before a read of the store.
type mark struct{ epoch, reached int64 }

// doneLoading ends an attempt to fill the cache. The caller holds mu.
func (c *Cacher) doneLoading() {
	if c.loading != nil {
		close(c.loading)
		c.loading = nil
	}
}

// filled makes a filled cache available to readers.
func (c *Cacher) filled(feed storage.Following, reached int64, began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return
	}
	c.loaded, c.feed, c.hopeless = true, feed, false
	c.reached.Store(max(reached, c.log.last))
	c.changed.Store(c.log.last)
	c.recovered()
	c.publish()
	c.doneLoading()
	c.trim()
	c.beat()
	c.opts.Hooks.filled(Filled{Records: c.state.records.len(), Bytes: c.state.bytes, Changes: c.log.count, Took: time.Since(began)})
}

// recovered records that the storage below has returned something. The caller holds mu.
func (c *Cacher) recovered() { c.problem, c.answered = nil, time.Now() }

// apply applies changes. The caller holds mu, and calls nudgeWoken after it has released mu.
func (c *Cacher) apply(moves []storage.Move) {
	now, budget := time.Now().UnixNano(), c.budget()
	for i := range moves {
		m := &moves[i]
		if m.Deleted && c.state.find(m.Record.Key) == nil {
			continue // the deletion of a value that the storage below had not shown
		}
		seg := c.log.open(m.Record.Revision, budget, c.base)
		ch := &change{revision: m.Record.Revision, forms: storage.NewForms(seg.grown)}
		if m.Deleted {
			ch.was = c.state.remove(c.edition, m.Record.Key)
		} else {
			ch.is = c.entries.entry(m.Entry)
			ch.was = c.state.put(c.edition, ch.is)
		}
		c.reminder.appended += c.log.add(seg, ch, now)
		c.woken = c.idle.wake(ch, c.woken)
	}
}

// base returns the state before the next change.
func (c *Cacher) base() *snapshot { return c.freeze(c.log.last) }

// Unless an option is set, the log may have this share of the bytes of the records, within these bounds.
const (
	windowShare    = 4
	minWindowBytes = 8 << 20
	maxWindowBytes = 128 << 20
)

// budget returns the maximum number of bytes of the log.
func (c *Cacher) budget() int64 {
	if c.opts.WindowBytes > 0 {
		return c.opts.WindowBytes
	}
	return min(max(c.state.bytes/windowShare, minWindowBytes), maxWindowBytes)
}

// trim removes what is outside the window from the log. The caller holds mu.
func (c *Cacher) trim() {
	budget := c.budget()
	c.log.trim(time.Now().Add(-c.opts.Window).UnixNano(), budget, func(ch *change) { c.entries.release(ch.was) })
	c.recent = slices.DeleteFunc(c.recent, func(s *snapshot) bool { return s.revision < c.log.floor })
	if s := c.published.Load(); s != nil && s.revision < c.log.floor {
		c.publish() // values that are only in the earlier state can then be freed
	}
	formed := c.log.formed.Load()
	if r := &c.reminder; r.appended+formed-r.formed > budget/reminders {
		c.idle.each(func(w *watcher) { w.remind(r.reached[0]) })
		copy(r.reached[:], r.reached[1:])
		r.appended, r.formed, r.reached[len(r.reached)-1] = 0, formed, c.reached.Load()
	}
}

// reminders is how often within a window the cache looks for idle watches that need a bookmark.
const reminders = 16

// reminder finds the watches that have received no revision for a part of the window.
type reminder struct {
	appended int64    // bytes added to the log since the last look
	formed   int64    // bytes that readers had derived from the log at the last look
	reached  [3]int64 // the revisions at the last looks, the oldest first
}

// beat makes the timer call tick later. The caller holds mu.
func (c *Cacher) beat() {
	if c.timer == nil {
		c.timer = time.AfterFunc(beatPeriod, c.tick)
		return
	}
	c.timer.Reset(beatPeriod)
}

// tick removes what is too old and watches that are abandoned. If the storage below is idle, tick requests progress, to find out
// whether it still answers.
func (c *Cacher) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.loaded {
		return // filled starts the timer again
	}
	c.trim()
	for _, w := range c.idle.abandoned() {
		w.goes()
	}
	if time.Since(c.answered) >= beatPeriod {
		c.progress.asked = false
		c.ask()
	}
	c.beat()
}

// Start begins to fill the cache, if that has not begun yet. It does not wait.
func (c *Cacher) Start() { c.start() }

// fillPause is how long Fill waits after a failed attempt to fill the cache before it checks again.
const fillPause = 10 * time.Millisecond

// Fill begins to fill the cache, if that has not begun yet, and returns when it is filled. If ctx ends before, it returns the
// context's error; after Close it returns storage.ErrClosed.
func (c *Cacher) Fill(ctx context.Context) error {
	for {
		if err := c.ready(ctx); err != nil || c.published.Load() != nil {
			return err
		}
		pause := time.NewTimer(fillPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

// compare checks whether the store was set back: the store returned the revision now after before was taken.
func (c *Cacher) compare(before mark, now int64) {
	if now >= before.reached {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before.epoch == c.epoch.Load() {
		c.setBack.Store(max(c.setBack.Load(), c.reached.Load(), c.known.Load()))
		c.writes.lower(now)
		c.void(fmt.Errorf("the store is at revision %d, and was at %d: it was set back to an older state", now, before.reached))
	}
}

func (c *Cacher) mark() mark { return mark{c.epoch.Load(), c.reached.Load()} }

// filling returns a *storage.FillingError while the cache is being filled. It returns nil if the cache is filled, or if an
// attempt to fill it has failed and the storage below may be able to serve.
func (c *Cacher) filling() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded || c.loading == nil || c.hopeless {
		return nil
	}
	return &storage.FillingError{RetryAfter: retryAfter(time.Since(c.empty))}
}

// retryAfter returns how long a refused client should wait if the cache has been empty for the given time. The formula is
// that of kube-apiserver (https://kep.k8s.io/4568).
func retryAfter(empty time.Duration) time.Duration {
	const growth, least, most = 0.06, 1, 30 // growth per second, bounds in seconds
	return time.Duration(min(max(math.Exp(growth*empty.Seconds()), least), most)) * time.Second
}

// ready returns when the cache is filled, when an attempt to fill it has failed, or after FillWait.
func (c *Cacher) ready(ctx context.Context) error {
	if c.life.Err() != nil {
		return storage.ErrClosed
	}
	if c.published.Load() != nil {
		return nil
	}
	c.start()
	c.mu.Lock()
	loading := c.loading
	c.mu.Unlock()
	if loading == nil {
		return nil
	}
	timer := time.NewTimer(c.opts.FillWait)
	defer timer.Stop()
	select {
	case <-loading:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.life.Err() != nil {
		return storage.ErrClosed
	}
	return nil
}
