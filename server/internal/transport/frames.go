package transport

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
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
// It uses no timer, and never waits for something that may not happen. As with any net.Conn of crypto/tls only one goroutine may
// write, and Close may be called at any time.
type frameConn struct {
	net.Conn                      // a *tls.Conn; this type hides it, since net/http would use HTTP/1.1 for it
	state    *tls.ConnectionState // the state of Conn
	pool     *sync.Pool           // *[]byte values
	limit    time.Duration
	once     sync.Once
	closed   chan struct{} // closed by Close

	windows windows // what the client allows to be sent

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
	preface, size := c.reads.preface, c.reads.size
	if c.reads.pass(p[:n], &c.windows); preface == 0 || size != c.reads.size {
		c.below.holdsHeader(c.reads.size)
	}
	return n, err
}

// Write implements net.Conn. It returns len(p) for bytes that are held back, too.
func (c *frameConn) Write(p []byte) (int, error) {
	c.windows.sent(c.at.pass(p))
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
	const endStream = 1
	return f.head[3] == frameData && f.head[4]&endStream == 0
}

// pass moves the position by p. It returns the sum of the lengths of the DATA frames whose heads end in p.
func (f *framePosition) pass(p []byte) (data int) {
	for len(p) > 0 {
		inHead := f.had < len(f.head)
		n, whole := f.step(p)
		if p = p[n:]; inHead && (whole || f.had == len(f.head)) && f.head[3] == frameData {
			data += f.length()
		}
	}
	return data
}

// length returns the length of the payload of the current frame, or of the last one. The head must have been passed.
func (f *framePosition) length() int {
	return int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
}

// step moves the position by the first n bytes of p, which is not empty: to the end of the head of a frame, or to the end of the
// frame. whole reports whether the frame has ended.
func (f *framePosition) step(p []byte) (n int, whole bool) {
	if f.had < len(f.head) {
		n = copy(f.head[f.had:], p)
		if f.had += n; f.had == len(f.head) {
			f.rest = f.length()
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

// pass moves the position by p, and changes w by the frames in it.
func (h *headerPosition) pass(p []byte, w *windows) {
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
		switch h.at.head[3] {
		case headers, continuation:
		case frameSettings, frameWindowUpdate:
			if inHead {
				w.had = 0
			} else {
				w.receive(&h.at.head, p[:n])
			}
			continue
		default:
			continue
		}
		if h.size += n; whole && h.at.head[4]&endHeaders != 0 {
			h.size = 0
		}
	}
}

// The types of frames, https://www.rfc-editor.org/rfc/rfc9113#section-6.
const (
	frameData         = 0
	frameSettings     = 4
	frameWindowUpdate = 8
)

// windows has the flow-control windows of a client: how many bytes of DATA frames may be sent to it
// (https://www.rfc-editor.org/rfc/rfc9113#section-5.2). The zero value is that of a client that has sent nothing yet.
type windows struct {
	stream atomic.Int64 // the initial window of a stream, minus the default
	conn   atomic.Int64 // the window of the connection, minus the default

	// Used only by Read.
	entry [6]byte // a setting, or an increment
	had   int     // bytes of entry that were received
}

// defaultWindow is the initial window of a stream and of a connection.
const defaultWindow = 1<<16 - 1

// wide reports whether the windows are so large that the rest of an answer which net/http keeps in a buffer is certainly sent.
// It is the case for Go clients and curl, which open windows of a gigabyte and of ten megabytes.
func (w *windows) wide() bool {
	const stream, conn = 32 << 10, 1 << 20
	return w.stream.Load() >= stream-defaultWindow && w.conn.Load() >= conn-defaultWindow
}

// sent is called with the length of DATA frames that are sent.
func (w *windows) sent(data int) {
	if data > 0 {
		w.conn.Add(-int64(data))
	}
}

// receive is called with a part of the payload of a SETTINGS or WINDOW_UPDATE frame that has this head.
func (w *windows) receive(head *[9]byte, p []byte) {
	const initialWindowSize = 4
	size := len(w.entry)
	if head[3] == frameWindowUpdate {
		if head[5]&0x7f|head[6]|head[7]|head[8] != 0 {
			return // the window of one stream
		}
		size = 4
	}
	for len(p) > 0 {
		n := copy(w.entry[w.had:size], p)
		p = p[n:]
		if w.had += n; w.had < size {
			return
		}
		w.had = 0
		switch {
		case size == 4:
			w.conn.Add(int64(binary.BigEndian.Uint32(w.entry[:4]) & (1<<31 - 1)))
		case binary.BigEndian.Uint16(w.entry[:2]) == initialWindowSize:
			w.stream.Store(int64(binary.BigEndian.Uint32(w.entry[2:])) - defaultWindow)
		}
	}
}

const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
