package transport

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is a connection that may keep for a while what is written to it. What is kept counts as written; should it fail to
// be sent, the next write says so. All methods may be called concurrently.
type Conn struct {
	net.Conn
	from  *Listener
	holds atomic.Int32
	use

	writing sync.Mutex  // guards all below, and is held while something is sent
	buf     *[]byte     // what is kept; nil: nothing
	timer   *time.Timer // calls late; nil before the first buf
	failed  error       // half of something may have been sent: nothing can be sent after it

	mu    sync.Mutex // guards all below; never held while something is sent
	until time.Time  // the deadline of writes that was set last
	own   bool       // late sends, and has a deadline of its own
}

// Hold keeps what is written from now on, until there is enough of it. Release must be called after it, once. A nil Conn
// keeps nothing.
func (c *Conn) Hold() {
	if c != nil {
		c.holds.Add(1)
	}
}

// Release lets the next write send what is kept, unless somebody else holds the connection still.
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

// keep appends p to what is kept; writing is held.
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

// send sends what is kept; writing is held.
func (c *Conn) send() error {
	c.timer.Stop()
	c.failed = c.sendAll(*c.buf)
	*c.buf = (*c.buf)[:0]
	c.from.buffers.Put(c.buf)
	c.buf = nil
	return c.failed
}

// sendAll sends p. Who has set the deadline means it for one record of TLS: a client that has taken as much in that time is given
// the same again, whatever else was kept. writing is held.
func (c *Conn) sendAll(p []byte) error {
	begun := time.Now()
	for {
		n, err := c.Conn.Write(p)
		if p = p[n:]; n < record || !errors.Is(err, os.ErrDeadlineExceeded) || !c.extend(begun) {
			return err
		}
	}
}

// extend begins anew the time that something sent since begun has; false when it has none.
func (c *Conn) extend(begun time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := c.from.limit
	if !c.until.IsZero() {
		wait = c.until.Sub(begun)
	}
	return wait > 0 && c.Conn.SetWriteDeadline(time.Now().Add(wait)) == nil
}

// late sends what is kept because nobody else has. Nobody may have set a deadline for that.
func (c *Conn) late() {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.buf != nil {
		c.alone(true)
		_ = c.send() // the next write is told
		c.alone(false)
	}
}

// alone begins or ends the time that late has.
func (c *Conn) alone(own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own = own
	at := c.until
	if own && at.IsZero() {
		at = time.Now().Add(c.from.limit)
	}
	_ = c.Conn.SetWriteDeadline(at) // an error is that of a closed connection, which the write has too
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until = at; c.own && at.IsZero() {
		return nil // late has set one, and ends it
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
