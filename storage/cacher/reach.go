package cacher

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// progressPause is how long the cache waits for progress before it asks again.
const progressPause = 100 * time.Millisecond

// revisions shares linearizable reads of the store's revision. One read is in progress, and the next one serves all callers
// that came meanwhile.
type revisions struct {
	read func(context.Context) (int64, error)

	mu      sync.Mutex // guards all below
	current *flight
	next    *flight // for callers that come while current is in progress: its read may have happened before they came
}

type flight struct {
	done     chan struct{} // closed when the fields below are set
	revision int64
	err      error
}

// get returns a revision that the store had after get was called. fly starts a goroutine that ends with its owner.
func (r *revisions) get(ctx context.Context, fly func(func(context.Context)) bool) (int64, error) {
	r.mu.Lock()
	f := r.next
	if f == nil {
		f = &flight{done: make(chan struct{})}
		if r.current != nil {
			r.next = f
		} else if r.current = f; !fly(r.run) {
			r.current = nil
			r.mu.Unlock()
			return 0, storage.ErrClosed
		}
	}
	r.mu.Unlock()
	select {
	case <-f.done:
		return f.revision, f.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// run reads until no caller waits.
func (r *revisions) run(life context.Context) {
	for {
		r.mu.Lock()
		f := r.current
		r.mu.Unlock()
		if f.revision, f.err = r.read(life); f.err != nil && life.Err() != nil {
			f.err = storage.ErrClosed
		}
		close(f.done)
		r.mu.Lock()
		r.current, r.next = r.next, nil
		over := r.current == nil
		r.mu.Unlock()
		if over {
			return
		}
	}
}

// know records a revision that the store has reached, unless the epoch has changed.
func (c *Cacher) know(epoch, revision int64) {
	for old := c.known.Load(); old < revision && epoch == c.epoch.Load() && !c.known.CompareAndSwap(old, revision); {
		old = c.known.Load()
	}
}

// errLate means that the cache did not reach a revision in time.
var errLate = errors.New("cacher: the cache is behind")

// waiter waits for a state.
type waiter struct {
	revision int64          // the state must be at this revision or a later one
	state    chan *snapshot // receives the state, or nil when the cache becomes void
}

// progress has the state of requests for progress marks.
type progress struct {
	asked   bool        // a request is in progress
	late    bool        // a caller came after it was made
	timer   *time.Timer // calls askAgain
	pending bool        // the timer is set
}

// reach returns a state at a revision or a later one. It returns nil when the cache is not filled, and errLate after
// ReadWait.
func (c *Cacher) reach(ctx context.Context, revision int64) (*snapshot, error) {
	if s := c.published.Load(); s != nil && s.revision >= revision {
		return s, nil
	}
	c.mu.Lock()
	if !c.loaded || c.reached.Load() >= revision {
		s := c.publish()
		c.mu.Unlock()
		return s, nil
	}
	w := &waiter{revision: revision, state: make(chan *snapshot, 1)}
	c.waiters = append(c.waiters, w)
	c.ask()
	c.askLater()
	c.mu.Unlock()
	began := time.Now()
	defer func() { c.opts.Hooks.waited(time.Since(began)) }()
	timeout := time.NewTimer(c.opts.ReadWait)
	defer timeout.Stop()
	select {
	case s := <-w.state:
		return s, nil
	case <-ctx.Done():
		c.leave(w)
		return nil, ctx.Err()
	case <-timeout.C:
		c.leave(w)
		return nil, errLate
	}
}

func (c *Cacher) leave(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.waiters {
		if other == w {
			last := len(c.waiters) - 1
			c.waiters[i], c.waiters[last] = c.waiters[last], nil
			c.waiters = c.waiters[:last]
			return
		}
	}
}

// ask requests a progress mark, unless a request is in progress. The caller holds mu.
func (c *Cacher) ask() {
	switch p := &c.progress; {
	case c.feed == nil:
	case p.asked:
		p.late = true
	default:
		p.asked, p.late = true, false
		c.feed.RequestProgress()
	}
}

// askLater makes the timer call askAgain. The caller holds mu.
func (c *Cacher) askLater() {
	switch p := &c.progress; {
	case p.pending:
		return
	case p.timer == nil:
		p.pending, p.timer = true, time.AfterFunc(progressPause, c.askAgain)
	default:
		p.pending = true
		p.timer.Reset(progressPause)
	}
}

// askAgain requests another mark while a caller waits: the first may be lost, or be too low. For a bookmark any mark is
// enough, except for a watch that begins at a later revision, which may never be reached.
func (c *Cacher) askAgain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress.pending = false
	if len(c.waiters) > 0 || len(c.asking) > 0 && c.progress.asked {
		c.progress.asked = false
		c.ask()
		c.askLater()
	}
}

// newest returns the latest state; nil when the cache is not filled.
func (c *Cacher) newest() *snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.publish()
}

// publish returns the latest state, and makes it available to readers without a lock. It returns nil when the cache is not
// filled. The caller holds mu.
func (c *Cacher) publish() *snapshot {
	if !c.loaded {
		return nil
	}
	reached := c.reached.Load()
	s := c.published.Load()
	switch {
	case s == nil || s.changed != c.log.last:
		s = c.freeze(reached)
	case s.revision < reached:
		s = &snapshot{state: s.state, changed: s.changed, revision: reached}
	default:
		return s
	}
	c.published.Store(s)
	return s
}

// freeze returns the latest state as the state at a revision. Later writes copy its nodes instead of changing them. The
// caller holds mu.
func (c *Cacher) freeze(revision int64) *snapshot {
	c.edition = c.newEdition()
	return &snapshot{state: c.state.clone(), changed: c.log.last, revision: revision}
}

// maxRecent is the number of older states that are kept for clients that list them page by page.
const maxRecent = 8

// older returns a state before the latest, at a revision; nil if it is not in the window.
func (c *Cacher) older(revision int64) *snapshot {
	c.mu.Lock()
	if !c.loaded || revision < c.log.floor {
		c.mu.Unlock()
		return nil
	}
	for _, s := range c.recent {
		if s.changed <= revision && revision <= s.revision {
			c.mu.Unlock()
			return s
		}
	}
	if revision >= c.log.last {
		defer c.mu.Unlock()
		if c.reached.Load() < revision {
			return nil // the cache became void meanwhile
		}
		return c.publish()
	}
	base, changes := c.log.at(revision)
	until := c.log.next(revision) - 1
	epoch := c.epoch.Load()
	c.mu.Unlock()

	s := &snapshot{state: base.state.clone(), changed: base.changed, revision: until}
	if len(changes) > 0 {
		s.changed = changes[len(changes)-1].revision
		s.apply(new(edition), changes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch == c.epoch.Load() {
		if len(c.recent) == maxRecent {
			c.recent = append(c.recent[:0], c.recent[1:]...)
		}
		c.recent = append(c.recent, s)
	}
	return s
}
