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

// deadlineWriter is the ResponseWriter of a handler from which the response may be taken away at any time. It has no Unwrap,
// since the writer beneath must not be used after the request has ended.
type deadlineWriter struct {
	header  http.Header // used only by the handler until the response begins
	writing atomic.Bool // a call is writing bytes to the client
	failing atomic.Bool // the header is that of an error; written under mu
	answer  recorder    // the handler's answer, also after expired; used only by the handler

	mu       sync.Mutex // guards all below; held while the handler uses w
	w        http.ResponseWriter
	begun    bool // the header is written, or the connection hijacked
	expired  bool // the response has been taken away
	finished bool // the handler has returned
}

func (d *deadlineWriter) init(w http.ResponseWriter) {
	header := w.Header()
	d.w, d.header = w, make(http.Header, len(header)+2)
	for name, values := range header {
		d.header[name] = slices.Clip(values) // so that values that the handler adds are not written into the slice
	}
}

// seen is called by the filters around the handler, which run in its goroutine.
func (d *deadlineWriter) seen() *recorder { return &d.answer }

// forHandler returns d, with Hijack if the writer beneath has it.
func (d *deadlineWriter) forHandler() http.ResponseWriter {
	if _, ok := d.w.(http.Hijacker); ok {
		return hijackableDeadlineWriter{d}
	}
	return d
}

// EndsWrites marks writers whose handlers need not set write deadlines of their own: see expire.
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
		return d.answer.write(takenAway{}, p)
	}
	d.begin()
	d.writing.Store(true)
	defer d.writing.Store(false)
	return d.answer.write(d.w, p)
}

// takenAway is what a handler writes to when the response has been taken away. The time of such writes counts, as in kube-apiserver.
type takenAway struct{}

// Write implements io.Writer.
func (takenAway) Write([]byte) (int, error) { return 0, http.ErrHandlerTimeout }

// Flush implements http.Flusher.
func (d *deadlineWriter) Flush() { _ = d.FlushError() } // http.Flusher returns no error

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

// begin passes on the handler's header, once. The caller holds mu.
func (d *deadlineWriter) begin() {
	if !d.begun {
		d.copyHeader()
		d.begun = true
	}
}

// copyHeader replaces the real header by the handler's. The caller holds mu.
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

// flushHeader passes on the header of a handler that has returned: all of it if nothing was written, and otherwise the trailers.
func (d *deadlineWriter) flushHeader() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun = false
	d.copyHeader()
}

// expire takes the response away from the handler. It calls hold before the handler can notice that. begun is true if a part of
// the response is written. ok is false if the response remains the handler's, because it has returned, or is answering with an
// error of its own.
func (d *deadlineWriter) expire(hold func()) (begun, ok bool) {
	for !d.mu.TryLock() { // the holder of mu is writing, or releases it at once
		if d.writing.Load() {
			// The response has begun, and will be aborted unless it is an error. Its client may be too slow to take what is
			// written, and must not delay this goroutine. The deadline may be set without mu, since only this goroutine ends the
			// use of w.
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

// lastWord is the time that a client has for receiving an error that is being written when the deadline passes.
const lastWord = 2 * time.Second

// finish records that the handler has returned, and reports whether the response had been taken away before.
func (d *deadlineWriter) finish() (expired bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finished = true
	return d.expired
}

// hijackableDeadlineWriter is a deadlineWriter with Hijack. A hijacked connection belongs to the handler.
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
