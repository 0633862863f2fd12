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

// follower fills the cache and follows the storage below. It is a running goroutine, or, if the feed is a storage.Waker that
// has nothing to deliver, a pending call of that feed. In the second case the cache has no goroutine. Both are counted in
// Cacher.working, and each starts the other. So there is only one at a time, and it alone uses the fields.
type follower struct {
	feed   storage.Following // nil: not connected
	pauses wait.Backoff      // before attempts to connect; zero: the storage below has delivered something since the last attempt
	again  func()            // Cacher.again
	heard  time.Time         // when the storage below delivered something last
	busy   bool              // the feed delivers so often that one waiting goroutine is cheaper than a new one each time
}

// restAfter is how long a busy follower waits before its goroutine ends.
const restAfter = 100 * time.Millisecond

// run fills the cache and follows the storage below. It returns after Close, when the storage below is closed, or when there
// is nothing to receive and the feed will call again.
func (c *Cacher) run() {
	f := &c.follower
	for c.life.Err() == nil {
		err := c.connect(f)
		if err == nil {
			var asleep bool
			if asleep, err = c.follow(f); asleep {
				return // f now belongs to the goroutine that the feed will start
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

// again calls run for a feed that had nothing to deliver. The goroutine was started by the goroutine that wakes the feed,
// usually a writer's, and has its labels for profiles. again replaces these labels by those of the cache.
func (c *Cacher) again() {
	defer c.working.Done()
	pprof.SetGoroutineLabels(c.life)
	c.run()
}

// sleep makes a feed call again when it has something to deliver; it returns false when the feed has something now. The
// caller is counted in c.working, and so is the pending call, which is made at the latest when c.life ends.
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

// connect makes a feed of the changes that the cache has not seen, unless there is one. It fills the cache first if
// necessary.
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
		return errVoid // the cache became void before the feed was known
	}
	c.feed, c.progress.asked = f.feed, false
	c.ask()
	return nil
}

// errVoid means that the changes of a feed must be ignored.
var errVoid = errors.New("cacher: the feed is void")

// follow receives from the feed until it ends, and returns its error. asleep means that there is nothing more to receive now,
// and the feed will call again.
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

// attend receives for a while, and then checks whether f is still busy.
func (c *Cacher) attend(f *follower) error {
	ctx, stop := context.WithTimeout(c.life, restAfter)
	defer stop()
	for {
		moves, err := f.feed.Next(ctx)
		switch {
		case err == nil:
			err = c.accept(f, moves)
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil: // otherwise it is another deadline, of the feed
			err = nil
		}
		if err != nil || ctx.Err() != nil {
			f.busy = time.Since(f.heard) < restAfter
			return err
		}
	}
}

// receive waits for the next delivery of the feed.
func (c *Cacher) receive(f *follower) error {
	moves, err := f.feed.Next(c.life)
	if err != nil {
		return err // if the feed is void, the error has no meaning
	}
	return c.accept(f, moves)
}

// accept processes a delivery of the feed.
func (c *Cacher) accept(f *follower, moves storage.Moves) error {
	if moves.Progress < c.reached.Load() {
		// The feed may come from a member of the store that is behind; the store's revision decides.
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

// take applies a delivery of a feed; it returns false when the feed is void.
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
