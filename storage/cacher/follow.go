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
	staleAfter = 3 * beatPeriod   // without an answer the cache is not fresh

	// Between two attempts to fill the cache.
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

// fly runs f in a goroutine that Close waits for; false after Close.
func (c *Cacher) fly(f func(context.Context)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return false
	}
	c.working.Go(func() { f(c.life) })
	return true
}

// failed notes why a feed of the storage below, or the attempt to have one, which is nil, has ended. Who waits for the
// cache to be filled waits no longer. What befalls a feed that is void already is of no account. True: the storage
// below is closed, and nothing will come any more.
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
	case c.loaded && c.hopeless: // a storage that is no storage.Source does not go on
		c.loaded, c.cut = false, err
		c.published.Store(nil)
		c.changed.Store(0)
		c.idle.each(func(w *watcher) { w.nudge() })
	}
	return false
}

// void begins a new cache: what was shown so far is not what the store has. The caller holds mu.
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

// forget empties the cache and ends all watches: with ended, or as expired when that is nil. The caller holds mu.
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

// mark is what the cache knows before a read of the store.
type mark struct{ epoch, reached int64 }

// doneLoading ends an attempt to fill the cache. The caller holds mu.
func (c *Cacher) doneLoading() {
	if c.loading != nil {
		close(c.loading)
		c.loading = nil
	}
}

// filled lets readers have the cache.
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

// recovered notes that the storage below has been heard of. The caller holds mu.
func (c *Cacher) recovered() { c.problem, c.answered = nil, time.Now() }

// apply makes changes. The caller holds mu, and calls nudgeWoken without it.
func (c *Cacher) apply(moves []storage.Move) {
	now, budget := time.Now().UnixNano(), c.budget()
	for i := range moves {
		m := &moves[i]
		if m.Deleted && c.state.find(m.Record.Key) == nil {
			continue // the storage below shows the end of what it had not shown
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

// base is the state before the next change.
func (c *Cacher) base() *snapshot { return c.freeze(c.log.last) }

// Unless an option says otherwise, the log may have this share of what the records take, within these bounds.
const (
	windowShare    = 4
	minWindowBytes = 8 << 20
	maxWindowBytes = 128 << 20
)

// budget is how many bytes the log may have.
func (c *Cacher) budget() int64 {
	if c.opts.WindowBytes > 0 {
		return c.opts.WindowBytes
	}
	return min(max(c.state.bytes/windowShare, minWindowBytes), maxWindowBytes)
}

// trim keeps the log within the window. The caller holds mu.
func (c *Cacher) trim() {
	budget := c.budget()
	c.log.trim(time.Now().Add(-c.opts.Window).UnixNano(), budget, func(ch *change) { c.entries.release(ch.was) })
	c.recent = slices.DeleteFunc(c.recent, func(s *snapshot) bool { return s.revision < c.log.floor })
	if s := c.published.Load(); s != nil && s.revision < c.log.floor {
		c.publish() // the values in the one before are nobody's but its
	}
	formed := c.log.formed.Load()
	if r := &c.reminder; r.appended+formed-r.formed > budget/reminders {
		c.idle.each(func(w *watcher) { w.remind(r.reached[0]) })
		copy(r.reached[:], r.reached[1:])
		r.appended, r.formed, r.reached[len(r.reached)-1] = 0, formed, c.reached.Load()
	}
}

// reminders is how often within a window the cache looks for idle watches that have to be told the revision.
const reminders = 16

// reminder finds the watches that have not been told a revision for a part of the window.
type reminder struct {
	appended int64    // bytes added to the log since the last look
	formed   int64    // bytes that readers had made of it then
	reached  [3]int64 // the revision at the last looks, the oldest first
}

// beat lets tick be called in a while. The caller holds mu.
func (c *Cacher) beat() {
	if c.timer == nil {
		c.timer = time.AfterFunc(beatPeriod, c.tick)
		return
	}
	c.timer.Reset(beatPeriod)
}

// tick drops what is too old and watches that are abandoned, and asks an idle storage below whether it is still there.
func (c *Cacher) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.loaded {
		return // whoever fills it begins anew
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

// Start begins to fill the cache, if nothing has yet. It does not wait for that.
func (c *Cacher) Start() { c.start() }

// fillPause is how long Fill waits after an attempt to fill the cache has failed, before it looks again.
const fillPause = 10 * time.Millisecond

// Fill begins to fill the cache, if nothing has yet, and returns when that is done: with the context's error, or
// storage.ErrClosed, when one of them ends before.
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

// compare finds out whether the store has gone back: after before was taken it said that it is at now.
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

// filling returns a *storage.FillingError while the cache is being filled. nil: it is filled, or an attempt to fill it has failed
// and the storage below may be able to answer.
func (c *Cacher) filling() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded || c.loading == nil || c.hopeless {
		return nil
	}
	return &storage.FillingError{RetryAfter: retryAfter(time.Since(c.empty))}
}

// retryAfter is how long who is turned away waits, of a cache that has been empty for a time: as kube-apiserver has it
// (https://kep.k8s.io/4568).
func retryAfter(empty time.Duration) time.Duration {
	const growth, least, most = 0.06, 1, 30 // of and in seconds
	return time.Duration(min(max(math.Exp(growth*empty.Seconds()), least), most)) * time.Second
}

// ready returns when the cache is filled, an attempt to fill it has failed, or it takes longer than FillWait.
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
