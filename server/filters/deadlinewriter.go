package filters

import (
	"bufio"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/server/response"
)

// deadlineWriter is the ResponseWriter of a handler from which the response may be taken away at any time. It has
// no Unwrap: what is beneath must not be touched once the request is over.
type deadlineWriter struct {
	header  http.Header // the handler's own, until the response begins
	writing atomic.Bool // bytes are on their way to the client
	failing atomic.Bool // the header is that of an error; written under mu
	answer  recorder    // what the handler has answered, whether it is let or not; the handler's own

	mu       sync.Mutex // guards all below, and is held while w is used by the handler
	w        http.ResponseWriter
	begun    bool // the header is written, or the connection hijacked
	expired  bool // the response has been taken away
	finished bool // the handler has returned
}

func (d *deadlineWriter) init(w http.ResponseWriter) {
	header := w.Header()
	d.w, d.header = w, make(http.Header, len(header)+2)
	for name, values := range header {
		d.header[name] = slices.Clip(values) // so that what the handler adds goes elsewhere
	}
}

// seen is for the filters around the handler, which run in its goroutine.
func (d *deadlineWriter) seen() *recorder { return &d.answer }

// forHandler returns d with the powers that what is beneath has.
func (d *deadlineWriter) forHandler() http.ResponseWriter {
	if _, ok := d.w.(http.Hijacker); ok {
		return hijackableDeadlineWriter{d}
	}
	return d
}

// EndsWrites tells handlers that they need no deadline of their own for what they write: see expire.
func (d *deadlineWriter) EndsWrites() {}

// Header implements http.ResponseWriter.
func (d *deadlineWriter) Header() http.Header { return d.header }

// WriteHeader implements http.ResponseWriter.
func (d *deadlineWriter) WriteHeader(code int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer.note(code)
	if d.expired {
		return
	}
	d.copyHeader()
	if !d.begun && code >= 400 {
		d.failing.Store(true)
	}
	d.begun = d.begun || code >= 200 || code == http.StatusSwitchingProtocols
	d.w.WriteHeader(code)
}

// SetCause is for response.SetCause. It does nothing once the response has been taken away.
func (d *deadlineWriter) SetCause(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.expired {
		response.SetCause(d.w, err)
	}
}

// Write implements http.ResponseWriter.
func (d *deadlineWriter) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer.note(http.StatusOK)
	if d.expired {
		return 0, http.ErrHandlerTimeout
	}
	d.begin()
	d.writing.Store(true)
	defer d.writing.Store(false)
	n, err := d.w.Write(p)
	d.answer.size += int64(n)
	return n, err
}

// Flush implements http.Flusher.
func (d *deadlineWriter) Flush() { _ = d.FlushError() } // http.Flusher has no way to say it

// FlushError is Flush for http.ResponseController.
func (d *deadlineWriter) FlushError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.expired {
		return http.ErrHandlerTimeout
	}
	d.answer.note(http.StatusOK)
	d.begin()
	d.writing.Store(true)
	defer d.writing.Store(false)
	return http.NewResponseController(d.w).Flush()
}

// SetReadDeadline is for http.ResponseController.
func (d *deadlineWriter) SetReadDeadline(at time.Time) error {
	return d.control(func(c *http.ResponseController) error { return c.SetReadDeadline(at) })
}

// SetWriteDeadline is for http.ResponseController.
func (d *deadlineWriter) SetWriteDeadline(at time.Time) error {
	return d.control(func(c *http.ResponseController) error { return c.SetWriteDeadline(at) })
}

// EnableFullDuplex is for http.ResponseController.
func (d *deadlineWriter) EnableFullDuplex() error {
	return d.control((*http.ResponseController).EnableFullDuplex)
}

func (d *deadlineWriter) control(f func(*http.ResponseController) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.expired {
		return http.ErrHandlerTimeout
	}
	return f(http.NewResponseController(d.w))
}

// begin hands the handler's header over, once; mu is held.
func (d *deadlineWriter) begin() {
	if !d.begun {
		d.copyHeader()
		d.begun = true
	}
}

// copyHeader makes the real header what the handler's is; mu is held.
func (d *deadlineWriter) copyHeader() {
	if d.begun {
		return
	}
	out := d.w.Header()
	clear(out)
	maps.Copy(out, d.header)
}

// silent reports whether the handler has written nothing.
func (d *deadlineWriter) silent() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.begun
}

// flushHeader hands over what the handler, which has returned, left in its header: all of it when nothing was
// written, and trailers in any case.
func (d *deadlineWriter) flushHeader() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun = false
	d.copyHeader()
}

// expire takes the response away; hold is called before anybody can see that. begun says that part of it is written.
// false says that it is the handler's: it has returned, or is answering with an error, its own word on the deadline.
func (d *deadlineWriter) expire(hold func()) (begun, ok bool) {
	for !d.mu.TryLock() { // who has it is writing, or done at once
		if d.writing.Load() {
			// The response has begun and will be aborted, unless it is an error: its client may be too slow to take what
			// is written, and must not hold us up. Only this goroutine ends the use of w, so that it may be told so
			// without mu.
			end := time.Unix(1, 0)
			if d.failing.Load() {
				end = time.Now().Add(lastWord)
			}
			_ = http.NewResponseController(d.w).SetWriteDeadline(end)
			d.mu.Lock()
			break
		}
		runtime.Gosched()
	}
	defer d.mu.Unlock()
	if d.finished || d.failing.Load() {
		return d.begun, false
	}
	hold()
	d.expired = true
	return d.begun, true
}

// lastWord is how long a client may take for an error that is being written when the deadline passes.
const lastWord = 2 * time.Second

// finish notes that the handler has returned, and reports whether the response had been taken away before.
func (d *deadlineWriter) finish() (expired bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finished = true
	return d.expired
}

// hijackableDeadlineWriter is a deadlineWriter whose connection can be taken over; it is then the handler's alone.
type hijackableDeadlineWriter struct{ *deadlineWriter }

// Hijack implements http.Hijacker.
func (d hijackableDeadlineWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.expired {
		return nil, nil, http.ErrHandlerTimeout
	}
	conn, rw, err := d.w.(http.Hijacker).Hijack()
	d.begun = d.begun || err == nil
	d.answer.hijacked = d.answer.hijacked || err == nil
	return conn, rw, err
}
