package transport

import (
	"crypto/tls"
	"net"
	"runtime"
	"sync"
	"time"
)

// frameConn is a connection that is written to in frames of HTTP/2 (https://www.rfc-editor.org/rfc/rfc9113#section-4.1). net/http
// writes them through a buffer of 4 KiB, and empties that whenever no frame waits: each event of a watch makes a TLS
// record and a call of the kernel, or more than one. A frameConn makes fewer, for more frames:
//
//   - It holds back what ends inside a frame: the rest is to come without a doubt, for a buffer that is full is all
//     that makes net/http write a part of one.
//   - It lets other goroutines run before it sends a few events. Those who have an event of a watch mostly have it at
//     the same time, a hundred on a connection: what they write meanwhile is sent as one.
//
// Nothing waits for time to pass, or for what may not come. As with any net.Conn of crypto/tls only one goroutine may
// write, and Close may be called at any time.
type frameConn struct {
	net.Conn                      // a *tls.Conn, behind which net/http would look for HTTP/1.1
	state    *tls.ConnectionState // its
	pool     *sync.Pool           // of *[]byte
	limit    time.Duration
	once     sync.Once
	closed   chan struct{} // closed by Close

	// Used by Read alone.
	below *Conn // may be nil
	reads headerPosition

	// Used by Write alone.
	held *[]byte // nil: nothing is held back
	at   framePosition
}

const (
	mostHeld = 64 << 10 // bytes
	fewBytes = 16 << 10 // as many as fill a TLS record are not waited with
)

// Read implements net.Conn.
func (c *frameConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	had := c.reads
	if c.reads.pass(p[:n]); had.preface == 0 || had.size != c.reads.size {
		c.below.holdsHeader(c.reads.size)
	}
	return n, err
}

// Write implements net.Conn. What is held back counts as written.
func (c *frameConn) Write(p []byte) (int, error) {
	c.at.pass(p)
	held := 0
	if c.held != nil {
		held = len(*c.held)
	}
	if c.at.inside() && held+len(p) <= mostHeld {
		c.hold(p)
		return len(p), nil
	}
	if c.at.openData() && held+len(p) < fewBytes {
		runtime.Gosched()
	}
	if held == 0 {
		return c.send(p)
	}
	c.hold(p)
	_, err := c.send(*c.held)
	c.release()
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// NetConn returns the connection beneath, a *tls.Conn.
func (c *frameConn) NetConn() net.Conn { return c.Conn }

func (c *frameConn) hold(p []byte) {
	if c.held == nil {
		var ok bool
		if c.held, ok = c.pool.Get().(*[]byte); !ok {
			c.held = new([]byte)
		}
	}
	*c.held = append(*c.held, p...)
}

func (c *frameConn) release() {
	if cap(*c.held) <= 2*mostHeld { // a client may want frames of 16 MiB: those are left to the garbage collector
		*c.held = (*c.held)[:0]
		c.pool.Put(c.held)
	}
	c.held = nil
}

// send writes p, a TLS record at a time: for each the client has its time.
func (c *frameConn) send(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		if err = c.SetWriteDeadline(time.Now().Add(c.limit)); err != nil {
			return n, err
		}
		var some int
		some, err = c.Conn.Write(p[n:min(len(p), n+fewBytes)])
		n += some
	}
	_ = c.SetWriteDeadline(time.Time{}) // crypto/tls writes by itself, too; an error is that of a closed connection
	return n, err
}

// Close implements net.Conn.
func (c *frameConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}

// framePosition is where a stream of frames is. The zero value is its beginning.
type framePosition struct {
	head [9]byte // of the frame, or of the last one
	had  int     // bytes of head that have passed; 0 between two frames
	rest int     // bytes of the payload that have not
}

// inside reports whether the stream is inside a frame.
func (f *framePosition) inside() bool { return f.had > 0 }

// openData reports whether the last frame was one of DATA that does not end its stream.
func (f *framePosition) openData() bool {
	const data, endStream = 0, 1
	return f.head[3] == data && f.head[4]&endStream == 0
}

// pass goes on by p.
func (f *framePosition) pass(p []byte) {
	for len(p) > 0 {
		n, _ := f.step(p)
		p = p[n:]
	}
}

// step goes on by the first n bytes of p, which has some: to the end of the head of a frame, or of the frame. whole reports
// whether the frame has ended.
func (f *framePosition) step(p []byte) (n int, whole bool) {
	if f.had < len(f.head) {
		n = copy(f.head[f.had:], p)
		if f.had += n; f.had == len(f.head) {
			f.rest = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
		}
	} else {
		n = min(f.rest, len(p))
		f.rest -= n
	}
	if f.had == len(f.head) && f.rest == 0 {
		f.had = 0
		return n, true
	}
	return n, false
}

// headerPosition is where the stream of a client is. The zero value is its beginning, where the preface is
// (https://www.rfc-editor.org/rfc/rfc9113#section-3.4).
type headerPosition struct {
	preface int // bytes of it that have passed
	at      framePosition
	size    int // bytes of the header that has not ended, in a frame of HEADERS and those of CONTINUATION after it
}

// pass goes on by p.
func (h *headerPosition) pass(p []byte) {
	const headers, continuation, endHeaders = 1, 9, 4
	n := min(len(http2Preface)-h.preface, len(p))
	h.preface += n
	for p = p[n:]; len(p) > 0; p = p[n:] {
		var whole bool
		inHead := h.at.had < len(h.at.head)
		n, whole = h.at.step(p)
		if inHead && h.at.had < len(h.at.head) && !whole {
			continue // nobody knows yet what it is a frame of
		}
		if kind := h.at.head[3]; kind != headers && kind != continuation {
			continue
		}
		if h.size += n; whole && h.at.head[4]&endHeaders != 0 {
			h.size = 0
		}
	}
}

const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
