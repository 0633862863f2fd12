package cacher

import (
	"context"
	"errors"
	"math"
	"runtime/pprof"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/util/wait"
)

// follower is the one who fills the cache and follows the storage below. It is a goroutine that runs, or, where the feed
// is a storage.Waker that has nothing to tell, a call that the feed owes: the cache at rest has no goroutine then. Either
// is counted in Cacher.working, and one hands over to the other: so there is one at a time, and all here is its own.
type follower struct {
	feed   storage.Following // nil: it has to be connected
	pauses wait.Backoff      // before attempts to connect; zero: the storage below has told something since the last
	again  func()            // Cacher.again
	heard  time.Time         // when the storage below has told something last
	busy   bool              // that is so often that one goroutine which waits is cheaper than one for each time
}

// restAfter is how long a busy follower waits before it is at rest.
const restAfter = 100 * time.Millisecond

// run fills the cache and follows the storage below: until Close, until that is closed, or until there is nothing to
// take and the feed will call again.
func (c *Cacher) run() {
	f := &c.follower
	for c.life.Err() == nil {
		err := c.connect(f)
		if err == nil {
			var asleep bool
			if asleep, err = c.follow(f); asleep {
				return // f is another's from now on
			}
		}
		feed := f.leave()
		if c.life.Err() != nil || c.failed(feed, err) {
			return
		}
		if f.pauses.Duration == 0 {
			f.pauses = wait.Backoff{Duration: minPause, Factor: 2, Steps: math.MaxInt, Cap: maxPause}
		}
		select {
		case <-time.After(f.pauses.Step()):
		case <-c.life.Done():
		}
	}
	f.leave()
}

// again is run for a feed that had nothing to tell. It is called in a goroutine that began in the one that wakes it, most
// often a writer's, whose labels for profiles it has: they are not the cache's, which is nobody's but its own.
func (c *Cacher) again() {
	defer c.working.Done()
	pprof.SetGoroutineLabels(c.life)
	c.run()
}

// sleep makes a feed call again when it has something to tell; false when it has now. The caller is counted in
// c.working, and so is the call, which comes at the latest when c.life ends.
func (c *Cacher) sleep(w storage.Waker) bool {
	c.working.Add(1)
	if w.Wake(c.follower.again) {
		return true
	}
	c.working.Done()
	return false
}

// leave closes the feed that was followed, and returns it; nil when there was none.
func (f *follower) leave() storage.Following {
	feed := f.feed
	if feed != nil {
		feed.Close()
	}
	f.feed = nil
	return feed
}

// connect has a feed of what the cache has not seen, unless there is one; it fills the cache first when it has to.
func (c *Cacher) connect(f *follower) (err error) {
	if f.feed != nil {
		return nil
	}
	c.mu.Lock()
	loaded, reached := c.loaded, c.reached.Load()
	if !loaded && c.loading == nil {
		c.loading = make(chan struct{})
	}
	c.mu.Unlock()
	if loaded {
		f.feed, err = c.below.Follow(c.life, reached)
	} else {
		f.feed, err = c.load()
	}
	if err != nil {
		f.feed = nil
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.loaded {
		return errVoid // before anybody could close the feed
	}
	c.feed, c.progress.asked = f.feed, false
	c.ask()
	return nil
}

// errVoid says that what a feed tells is of no account.
var errVoid = errors.New("cacher: the feed is void")

// follow receives what the feed tells until it ends, and returns why. Asleep: there is nothing more to receive, and the
// feed will call again.
func (c *Cacher) follow(f *follower) (asleep bool, err error) {
	waker, wakes := f.feed.(storage.Waker)
	for err == nil {
		switch {
		case wakes && f.busy:
			err = c.attend(f)
		case wakes && c.sleep(waker):
			return true, nil
		default:
			err = c.receive(f)
		}
	}
	return false, err
}

// attend receives for a while, and finds out whether f is busy still.
func (c *Cacher) attend(f *follower) error {
	ctx, stop := context.WithTimeout(c.life, restAfter)
	defer stop()
	for {
		moves, err := f.feed.Next(ctx)
		switch {
		case err == nil:
			err = c.accept(f, moves)
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil: // a feed may have had another deadline
			err = nil
		}
		if err != nil || ctx.Err() != nil {
			f.busy = time.Since(f.heard) < restAfter
			return err
		}
	}
}

// receive waits for what the feed tells next.
func (c *Cacher) receive(f *follower) error {
	moves, err := f.feed.Next(c.life)
	if err != nil {
		return err // of a feed that is void it means nothing
	}
	return c.accept(f, moves)
}

// accept takes what the feed has told.
func (c *Cacher) accept(f *follower, moves storage.Moves) error {
	if moves.Progress < c.reached.Load() {
		// Another member of the store may not be that far yet; what the store says is what counts.
		if _, err := c.now(c.life); err != nil {
			return err
		}
	}
	if !c.take(f.feed, moves) {
		return errVoid
	}
	now := time.Now()
	f.pauses, f.busy, f.heard = wait.Backoff{}, now.Sub(f.heard) < restAfter, now
	return nil
}

// take adds what a feed tells; false when the feed is void.
func (c *Cacher) take(feed storage.Following, m storage.Moves) bool {
	defer c.nudgeWoken()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.feed != feed {
		return false
	}
	c.apply(m.Moves)
	c.reached.Store(max(c.reached.Load(), m.Progress, c.log.last))
	c.changed.Store(c.log.last)
	c.recovered()
	c.trim()
	c.serve(len(m.Moves) > 0)
	c.opts.Hooks.received(len(m.Moves))
	return true
}
