package filters

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// deadlineContext is like the context of context.WithDeadline. Until Done is called, it has no timer and does not register with
// its parent: most requests end before that.
type deadlineContext struct {
	context.Context // the parent; nil: the deadlineContext is not in use
	at              time.Time

	made atomic.Pointer[madeContext] // nil: Done has not been called

	mu  sync.Mutex // guards err, and is held while made is set
	err error      // the result of Err, if that was not nil
}

// madeContext is a context of package context.
type madeContext struct {
	context.Context
	cancel context.CancelFunc
}

// ends returns a context with a deadline for the request of p. The method end of the context must be called.
func (p *passage) ends(at time.Time) *deadlineContext {
	c := &p.until
	if c.Context != nil { // in use by another Deadline
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

// make makes the context of package context, unless there is one. The caller holds mu.
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
			c.make() // so that context.Cause does not change later
		}
	}
	return c.err
}

// over returns the reason why the context has ended, other than a call of end, or nil. The caller holds mu.
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

// Value implements context.Context. After a call of Done it returns the values of made, in which package context looks for the
// context that closes the channel.
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
