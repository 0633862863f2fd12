package transport

import (
	"net/http"
	"time"
)

// Requests counts the requests that next serves for their [Connections].
func Requests(next http.Handler) http.Handler { return &requests{next: next} }

type requests struct {
	next http.Handler
	h2   bool // the requests are served by ServeHTTP2
}

// ServeHTTP implements http.Handler. It also does the work of withTLS, so that a watch does not have the frame of another handler
// on its stack.
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
		panic(http.ErrAbortHandler) // the connection is closing
	}
	defer c.end()
	if c.limited { // requests of HTTP/1.1 on a connection are served one after the other
		c.limited = false
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the next write returns an error, too
	}
	h.next.ServeHTTP(w, r)
	if limit := c.in.o.UnauthenticatedTime; limit > 0 && !c.known.Load() {
		// Bytes that the handler has left in a buffer are written after it returns. Without a deadline this could wait forever
		// for a client that does not read.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit))
		if r.ProtoMajor == 1 {
			c.limited = true
		}
	}
}

// completeTLS sets the TLS state of a request over HTTP/2 to that of its connection.
func completeTLS(r *http.Request) {
	if r.TLS == nil {
		if c, ok := r.Context().Value(frameKey{}).(*frameConn); ok {
			r.TLS = c.state
		}
	}
}
