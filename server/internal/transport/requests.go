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
	var frames *frameConn
	if h.h2 {
		frames = completeTLS(r)
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
	if frames == nil {
		h.next.ServeHTTP(w, r)
	} else {
		// net/http keeps a request over HTTP/2 until the client has received the answer, of which it needs only the method. The
		// header may have a megabyte. So the handler has a copy.
		own := *r
		r.Header, r.URL, r.RequestURI, r.Host = nil, nil, "", ""
		h.next.ServeHTTP(w, &own)
	}
	if limit := c.in.o.RestTime; limit > 0 && (frames == nil || !c.known.Load() || !frames.windows.wide()) {
		// Bytes that the handler has left in a buffer are written after it returns. Without a deadline this could wait forever
		// for a client that does not read. Over HTTP/2 a deadline costs about a microsecond, and a client with wide windows that
		// does not read loses its connection.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit))
		if frames == nil {
			c.limited = true
		}
	}
}

// completeTLS sets the TLS state of a request over HTTP/2 to that of its connection, which it returns.
func completeTLS(r *http.Request) *frameConn {
	c, ok := r.Context().Value(frameKey{}).(*frameConn)
	if ok && r.TLS == nil {
		r.TLS = c.state
	}
	return c
}
