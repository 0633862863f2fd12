package transport

import (
	"net/http"
	"time"
)

// Requests lets the [Connections] know of the requests that next serves.
func Requests(next http.Handler) http.Handler { return &requests{next: next} }

type requests struct {
	next http.Handler
	h2   bool // they come by ServeHTTP2
}

// ServeHTTP implements http.Handler. It also is withTLS: a watch saves the frame of another handler on its stack.
func (h *requests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.h2 {
		completeTLS(r)
	}
	c := ConnOf(r.Context())
	if c == nil || c.in == nil {
		h.next.ServeHTTP(w, r)
		return
	}
	if !c.begin() {
		panic(http.ErrAbortHandler) // its place was taken
	}
	defer c.end()
	if c.limited { // no two requests of HTTP/1.1 are served at the same time
		c.limited = false
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // an error is met by the next write, too
	}
	h.next.ServeHTTP(w, r)
	if limit := c.in.o.StrangerTime; limit > 0 && !c.known.Load() {
		// What the handler has left in a buffer is written after it, and may wait for ever for a client that does not read.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit))
		if r.ProtoMajor == 1 {
			c.limited = true
		}
	}
}

// completeTLS gives a request over HTTP/2 the state of its connection.
func completeTLS(r *http.Request) {
	if r.TLS == nil {
		if c, ok := r.Context().Value(frameKey{}).(*frameConn); ok {
			r.TLS = c.state
		}
	}
}
