package transport

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is a connection that may keep written bytes for a while. Write reports kept bytes as written. If sending them fails, the
// next Write returns the error. All methods may be called concurrently.
type Conn struct {
	net.Conn
	from  *Listener
	holds atomic.Int32
	use

	writing sync.Mutex  // guards all below; held while bytes are sent
	buf     *[]byte     // the kept bytes; nil: none
	timer   *time.Timer // calls late; nil before the first buf
	failed  error       // a part may have been sent, so nothing can be sent any more

	mu    sync.Mutex // guards all below; not held while bytes are sent
	until time.Time  // the deadline of writes that was set last
	own   bool       // late is sending, with a deadline of its own
}

// Hold makes the Conn keep bytes that are written from now on, until there are enough. Each Hold must be followed by one Release.
// For a nil Conn it does nothing.
func (c *Conn) Hold() {
	if c != nil {
		c.holds.Add(1)
	}
}

// Release lets the next write send the kept bytes, unless another handler holds the connection.
func (c *Conn) Release() {
	if c != nil {
		c.holds.Add(-1)
	}
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.failed != nil {
		return 0, c.failed
	}
	held := c.holds.Load() > 0
	if c.buf == nil && !held {
		return c.Conn.Write(p)
	}
	c.keep(p)
	if held && len(*c.buf) < enough {
		return len(p), nil
	}
	if err := c.send(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// keep appends p to the kept bytes. The caller holds writing.
func (c *Conn) keep(p []byte) {
	if c.buf == nil {
		var ok bool
		if c.buf, ok = c.from.buffers.Get().(*[]byte); !ok {
			b := make([]byte, 0, enough+32<<10)
			c.buf = &b
		}
		if c.timer == nil {
			c.timer = time.AfterFunc(gatherTime, c.late)
		} else {
			c.timer.Reset(gatherTime)
		}
	}
	*c.buf = append(*c.buf, p...)
}

// send sends the kept bytes. The caller holds writing.
func (c *Conn) send() error {
	c.timer.Stop()
	c.failed = c.sendAll(*c.buf)
	*c.buf = (*c.buf)[:0]
	c.from.buffers.Put(c.buf)
	c.buf = nil
	return c.failed
}

// sendAll sends p. The deadline that was set is meant for one TLS record. If the client has taken as much until the deadline, it
// gets the same time again for the rest. The caller holds writing.
func (c *Conn) sendAll(p []byte) error {
	begun := time.Now()
	for {
		n, err := c.Conn.Write(p)
		if p = p[n:]; n < record || !errors.Is(err, os.ErrDeadlineExceeded) || !c.extend(begun) {
			return err
		}
	}
}

// extend sets a new deadline: from now on, the client has as much time as the write that began at begun had, or the limit of the
// Listener if that write had no deadline. It returns false if there is no limit either.
func (c *Conn) extend(begun time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := c.from.limit
	if !c.until.IsZero() {
		wait = c.until.Sub(begun)
	}
	return wait > 0 && c.Conn.SetWriteDeadline(time.Now().Add(wait)) == nil
}

// late sends the kept bytes if no write has sent them. The timer calls it. If no deadline is set, it uses a deadline of its own.
func (c *Conn) late() {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.buf != nil {
		c.alone(true)
		_ = c.send() // the next write returns the error
		c.alone(false)
	}
}

// alone sets the deadline for late (own is true), or restores the deadline of other writes (own is false).
func (c *Conn) alone(own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own = own
	at := c.until
	if own && at.IsZero() {
		at = time.Now().Add(c.from.limit)
	}
	_ = c.Conn.SetWriteDeadline(at) // an error is that of a closed connection, which the write returns, too
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until = at; c.own && at.IsZero() {
		return nil // late has set a deadline, and removes it
	}
	return c.Conn.SetWriteDeadline(at)
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(at time.Time) error {
	if err := c.SetReadDeadline(at); err != nil {
		return err
	}
	return c.SetWriteDeadline(at)
}
