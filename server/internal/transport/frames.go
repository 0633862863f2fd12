package transport

import (
	"crypto/tls"
	"net"
	"runtime"
	"sync"
	"time"
)

// frameConn is a connection to which net/http writes frames of HTTP/2 (https://www.rfc-editor.org/rfc/rfc9113#section-4.1).
// net/http writes them through a buffer of 4 KiB, which it empties whenever no frame waits. So each event of a watch makes a TLS
// record and a system call, or more than one. A frameConn makes fewer of them, for more frames:
//
//   - It holds back a write that ends inside a frame. The rest of the frame always follows, since net/http writes a part of a
//     frame only when its buffer is full.
//   - It lets other goroutines run before it sends a few events. The watches of a connection, of which there may be a hundred,
//     mostly have an event at the same time. Everything that they write meanwhile is sent as one write.
//
// It does not wait for a time, nor for anything that may not come. As with any net.Conn of crypto/tls only one goroutine may
// write, and Close may be called at any time.
type frameConn struct {
	net.Conn                      // a *tls.Conn; this type hides it, since net/http would use HTTP/1.1 for it
	state    *tls.ConnectionState // the state of Conn
	pool     *sync.Pool           // *[]byte values
	limit    time.Duration
	once     sync.Once
	closed   chan struct{} // closed by Close

	// The following fields are used only by Read.
	below *Conn // may be nil
	reads headerPosition

	// The following fields are used only by Write.
	held *[]byte // nil: nothing is held back
	at   framePosition
}

const (
	mostHeld = 64 << 10 // bytes
	fewBytes = 16 << 10 // bytes of a full TLS record, which is sent without waiting for more
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

// Write implements net.Conn. It returns len(p) for bytes that are held back, too.
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
	if cap(*c.held) <= 2*mostHeld { // a client may allow frames of 16 MiB: such buffers are left to the garbage collector
		*c.held = (*c.held)[:0]
		c.pool.Put(c.held)
	}
	c.held = nil
}

// send writes p, one TLS record at a time. The client has the time limit for each.
func (c *frameConn) send(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		if err = c.SetWriteDeadline(time.Now().Add(c.limit)); err != nil {
			return n, err
		}
		var some int
		some, err = c.Conn.Write(p[n:min(len(p), n+fewBytes)])
		n += some
	}
	_ = c.SetWriteDeadline(time.Time{}) // crypto/tls writes on its own, too; an error is that of a closed connection
	return n, err
}

// Close implements net.Conn.
func (c *frameConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}

// framePosition is the position in a stream of frames. The zero value is its beginning.
type framePosition struct {
	head [9]byte // the head of the current frame, or of the last one
	had  int     // bytes of head that were passed; 0 between two frames
	rest int     // bytes of the payload that were not passed yet
}

// inside reports whether the stream is inside a frame.
func (f *framePosition) inside() bool { return f.had > 0 }

// openData reports whether the last frame was a DATA frame that does not end its stream.
func (f *framePosition) openData() bool {
	const data, endStream = 0, 1
	return f.head[3] == data && f.head[4]&endStream == 0
}

// pass moves the position by p.
func (f *framePosition) pass(p []byte) {
	for len(p) > 0 {
		n, _ := f.step(p)
		p = p[n:]
	}
}

// step moves the position by the first n bytes of p, which is not empty: to the end of the head of a frame, or to the end of the
// frame. whole reports whether the frame has ended.
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

// headerPosition is the position in the stream of a client. The zero value is its beginning, where the preface is
// (https://www.rfc-editor.org/rfc/rfc9113#section-3.4).
type headerPosition struct {
	preface int // bytes of the preface that were passed
	at      framePosition
	size    int // bytes of the header that is incomplete, in a HEADERS frame and the CONTINUATION frames after it
}

// pass moves the position by p.
func (h *headerPosition) pass(p []byte) {
	const headers, continuation, endHeaders = 1, 9, 4
	n := min(len(http2Preface)-h.preface, len(p))
	h.preface += n
	for p = p[n:]; len(p) > 0; p = p[n:] {
		var whole bool
		inHead := h.at.had < len(h.at.head)
		n, whole = h.at.step(p)
		if inHead && h.at.had < len(h.at.head) && !whole {
			continue // the type of the frame is not known yet
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
