package filters

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/keelson-dev/keelson/server/request"
)

// watched is a ResponseWriter that records the response.
type watched interface {
	http.ResponseWriter
	seen() *recorder
}

// watch wraps the writer of p in a watched one, unless it is one already. So any number of filters needs only one wrapper.
func (p *passage) watch() watched {
	if known, ok := p.w.(watched); ok {
		return known
	}
	var w watched = &p.answer
	p.answer.ResponseWriter = p.w
	if _, ok := p.w.(http.Hijacker); ok {
		w = &hijackable{&p.answer}
	}
	p.w = w
	return w
}

// recorder records the status and the size of the response that is written through it. Other methods of the ResponseWriter are
// reached by Unwrap.
type recorder struct {
	http.ResponseWriter
	code     int   // 0: nothing has been written
	size     int64 // bytes of the body, as it is sent
	hijacked bool
	cause    error               // the reason for a code of 500 or more, if SetCause was called
	body     *unreadBody         // begins is called when the response begins; may be nil
	started  func(code int)      // called when the response begins; may be nil
	latency  *request.Latency    // gets the time of writes; may be nil
	taken    func(conn net.Conn) // called when the connection is hijacked; may be nil
}

func (r *recorder) seen() *recorder { return r }

// begun reports whether it is too late for another answer.
func (r *recorder) begun() bool { return r.code != 0 || r.hijacked }

// note records the code of a response, if the response begins now.
func (r *recorder) note(code int) {
	if r.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) { // the other 1xx codes are followed by another code
		r.code = code
		if r.body != nil && code >= 200 {
			r.body.begins()
		}
		if r.started != nil {
			r.started(code)
		}
	}
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	r.note(code)
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	r.note(http.StatusOK)
	return r.write(r.ResponseWriter, p)
}

// write writes a part of the body to w.
func (r *recorder) write(w io.Writer, p []byte) (int, error) {
	if r.latency != nil {
		began := time.Now()
		defer func() { r.latency.Add(request.Writing, time.Since(began)) }()
	}
	n, err := w.Write(p)
	r.size += int64(n)
	return n, err
}

// Flush implements http.Flusher.
func (r *recorder) Flush() { _ = r.FlushError() } // http.Flusher returns no error

// FlushError is Flush for http.ResponseController.
func (r *recorder) FlushError() error {
	r.note(http.StatusOK)
	return http.NewResponseController(r.ResponseWriter).Flush()
}

// EnableFullDuplex is for http.ResponseController.
func (r *recorder) EnableFullDuplex() error {
	if r.body != nil {
		r.body.duplex.Store(true)
	}
	return http.NewResponseController(r.ResponseWriter).EnableFullDuplex()
}

// SetCause is for response.SetCause.
func (r *recorder) SetCause(err error) { r.cause = err }

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// hijackable is a recorder with Hijack.
type hijackable struct{ *recorder }

// Hijack implements http.Hijacker.
func (r *hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := r.ResponseWriter.(http.Hijacker).Hijack()
	if first := err == nil && !r.begun(); first && r.started != nil {
		r.started(http.StatusSwitchingProtocols)
	}
	r.hijacked = r.hijacked || err == nil
	if err == nil && r.taken != nil {
		r.taken(conn)
	}
	return conn, rw, err
}
