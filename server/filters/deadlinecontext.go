package filters

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// deadlineContext is what context.WithDeadline makes, without a timer and without being told of the end of its parent as
// long as nobody waits for its own end: most requests are over before anybody does.
type deadlineContext struct {
	context.Context // the parent; nil: not in use
	at              time.Time

	made atomic.Pointer[madeContext] // nil: nobody has called Done

	mu  sync.Mutex // guards err, and is held while made is set
	err error      // what Err has returned, if it was not nil
}

// madeContext is one of package context.
type madeContext struct {
	context.Context
	cancel context.CancelFunc
}

// ends returns the context of p's request with a deadline. Its end must be called.
func (p *passage) ends(at time.Time) *deadlineContext {
	c := &p.until
	if c.Context != nil { // of another Deadline
		c = new(deadlineContext)
	}
	c.Context, c.at = p.r.Context(), at
	if before, ok := c.Context.Deadline(); ok && before.Before(at) {
		c.at = before
	}
	return c
}

// Deadline implements context.Context.
func (c *deadlineContext) Deadline() (time.Time, bool) { return c.at, true }

// Done implements context.Context.
func (c *deadlineContext) Done() <-chan struct{} {
	if made := c.made.Load(); made != nil {
		return made.Done()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.make().Done()
}

// make makes the context that tells of the end; mu is held.
func (c *deadlineContext) make() *madeContext {
	made := c.made.Load()
	if made == nil {
		made = new(madeContext)
		made.Context, made.cancel = context.WithDeadline(c.Context, c.at)
		if c.err != nil {
			made.cancel()
		}
		c.made.Store(made)
	}
	return made
}

// Err implements context.Context.
func (c *deadlineContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		if c.err = c.over(); c.err != nil {
			c.make() // so that the cause is what it is now
		}
	}
	return c.err
}

// over is why the context has ended by itself; mu is held.
func (c *deadlineContext) over() error {
	if made := c.made.Load(); made != nil {
		return made.Err()
	}
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(c.at) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context. Who has called Done finds, as package context does, the context that told him.
func (c *deadlineContext) Value(key any) any {
	if made := c.made.Load(); made != nil {
		return made.Value(key)
	}
	return c.Context.Value(key)
}

// end ends the context, unless it has ended.
func (c *deadlineContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = c.over()
	}
	if c.err == nil {
		c.err = context.Canceled
	}
	if made := c.made.Load(); made != nil {
		made.cancel()
	}
}
