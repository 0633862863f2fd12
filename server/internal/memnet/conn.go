// Package memnet provides a network in memory: connections between clients and a server of the same process, and a listener for
// them.
package memnet

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// connBuffer is how many bytes a connection holds in each direction before a write blocks. A TLS record has at most 16 KiB, see
// RFC 8446, section 5.1.
const connBuffer = 64 << 10

// conn is one end of a connection in memory. It behaves like a TCP connection: a write returns as soon as there is room in the
// buffer. After Close, the other end can still read the bytes written before, and then reads io.EOF. Unlike with net.Pipe, a
// write does not need a concurrent read. A goroutine that waits is durably blocked in the sense of package testing/synctest: it
// holds no lock meanwhile.
type conn struct {
	in, out       *stream
	local, remote net.Addr
	value         any // the value of the dialer
}

// clientAddr is the address of all clients.
const clientAddr = addr("127.0.0.1:0")

// newConns returns both ends of a connection, whose value is that of the dialer. It starts no goroutine.
func newConns(serving net.Addr, value any) (client, server net.Conn) {
	up, down := newStream(), newStream()
	return &conn{in: down, out: up, local: clientAddr, remote: serving}, &conn{in: up, out: down, local: serving, remote: clientAddr, value: value}
}

// ValueOf returns the value of the dialer that opened c, which a Listener has accepted. It returns nil for other connections.
func ValueOf(c net.Conn) any {
	if own, ok := c.(*conn); ok {
		return own.value
	}
	return nil
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.failed("read", err)
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b)
	return n, c.failed("write", err)
}

func (c *conn) failed(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) { // io.Reader requires io.EOF unwrapped
		return err
	}
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// Close implements net.Conn. A second Close does nothing.
func (c *conn) Close() error {
	c.out.finish()
	c.in.abandon()
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.reader, t)
	c.out.setDeadline(&c.out.writer, t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.reader, t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writer, t)
	return nil
}

// stream is one direction of a connection.
type stream struct {
	mu             sync.Mutex // guards all fields below
	buf            []byte     // the bytes before next have been read
	next           int
	finished       bool // closed by the writing end
	abandoned      bool // closed by the reading end
	writing        bool // a write is in progress; others wait, so that writes are not mixed
	reader, writer side
}

// side is the state of one end of a stream.
type side struct {
	changed  sync.Cond // signals a change that this side may wait for; its lock is that of the stream
	waiting  int
	deadline time.Time   // zero means none
	timer    *time.Timer // broadcasts changed at the deadline; nil before the first wait with a deadline
}

func newStream() *stream {
	s := &stream{}
	s.reader.changed.L, s.writer.changed.L = &s.mu, &s.mu
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.abandoned:
			return 0, net.ErrClosed
		case s.reader.late():
			return 0, os.ErrDeadlineExceeded
		case s.next < len(s.buf):
			n := copy(b, s.buf[s.next:])
			if s.next += n; s.next == len(s.buf) {
				s.buf, s.next = s.buf[:0], 0
			}
			s.writer.wake()
			return n, nil
		case s.finished:
			return 0, io.EOF
		case len(b) == 0:
			return 0, nil
		}
		s.wait(&s.reader)
	}
}

func (s *stream) write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := false
	defer func() {
		if mine {
			s.writing = false
			s.writer.wake()
		}
	}()
	for {
		switch {
		case s.finished:
			return n, net.ErrClosed
		case s.writer.late():
			return n, os.ErrDeadlineExceeded
		case s.abandoned:
			return n, syscall.EPIPE // as with TCP
		}
		if mine || !s.writing {
			mine, s.writing = true, true
			if took := s.take(b); took > 0 {
				b, n = b[took:], n+took
				s.reader.wake()
			}
			if len(b) == 0 {
				return n, nil
			}
		}
		s.wait(&s.writer)
	}
}

// take copies as much of b as there is room for. The caller holds mu.
func (s *stream) take(b []byte) int {
	n := min(len(b), connBuffer-(len(s.buf)-s.next))
	if s.next > 0 && len(s.buf)+n > cap(s.buf) {
		s.buf, s.next = s.buf[:copy(s.buf, s.buf[s.next:])], 0
	}
	s.buf = append(s.buf, b[:n]...)
	return n
}

// finish closes the writing end.
func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	s.reader.wake()
	s.writer.wake()
}

// abandon closes the reading end and drops the unread bytes.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned, s.buf, s.next = true, nil, 0
	s.reader.wake()
	s.writer.wake()
}

func (s *stream) setDeadline(side *side, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	side.deadline = t
	side.wake() // waiters check the deadline
}

// wait returns when there may be a change for a side, or when its deadline has passed. The caller holds mu.
func (s *stream) wait(side *side) {
	side.waiting++
	if !side.deadline.IsZero() {
		if left := time.Until(side.deadline); side.timer == nil {
			side.timer = time.AfterFunc(left, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				side.wake()
			})
		} else {
			side.timer.Reset(left)
		}
	}
	side.changed.Wait()
	if side.waiting--; side.waiting == 0 && side.timer != nil {
		side.timer.Stop()
	}
}

// wake wakes the goroutines that wait. The caller holds the stream's lock.
func (s *side) wake() {
	if s.waiting > 0 {
		s.changed.Broadcast()
	}
}

// late reports whether the deadline has passed. The caller holds the stream's lock.
func (s *side) late() bool { return !s.deadline.IsZero() && !time.Now().Before(s.deadline) }
