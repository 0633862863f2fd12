package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// HTTP2 serves the connections of another http.Server on which HTTP/2 was negotiated, each through a [frameConn]. The other
// server has no hook for wrapping such a connection. For the http.Server inside HTTP2 the connections are plain ones, on which
// nothing is negotiated.
type HTTP2 struct {
	inner http.Server
	conns chan net.Conn
	pool  sync.Pool     // *[]byte values for frameConns
	gone  chan struct{} // closed when inner accepts no more connections
	stop  sync.Once     // closes gone
	ended chan struct{} // closed when the goroutine of inner has ended
	limit time.Duration // time for which a client may block a write
}

// prefaceTimeout is the time in which a client has to send the preface of HTTP/2, as in net/http.
const prefaceTimeout = 10 * time.Second

// ServeHTTP2 serves the connections of hs that use HTTP/2, with its handler and limits, until End is called. End must be called
// when hs serves no more. The fields BaseContext, ConnState, ReadTimeout and WriteTimeout of hs are not used. A connection whose
// client blocks a write for longer than limit is closed.
func ServeHTTP2(hs *http.Server, limit time.Duration) *HTTP2 {
	s := &HTTP2{conns: make(chan net.Conn), gone: make(chan struct{}), ended: make(chan struct{}), limit: limit}
	s.inner = http.Server{
		Handler:           withTLS(hs.Handler),
		ReadHeaderTimeout: prefaceTimeout, // its only use in HTTP/2
		IdleTimeout:       hs.IdleTimeout,
		MaxHeaderBytes:    hs.MaxHeaderBytes,
		ErrorLog:          hs.ErrorLog,
		HTTP2:             hs.HTTP2,
		Protocols:         new(http.Protocols),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if hs.ConnContext != nil {
				ctx = hs.ConnContext(ctx, c)
			}
			return context.WithValue(ctx, frameKey{}, c)
		},
	}
	s.inner.Protocols.SetUnencryptedHTTP2(true)
	hs.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": s.take}
	hs.RegisterOnShutdown(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.inner.Shutdown(over) // sends GOAWAY; hs waits for the end of the connections, which are its own
	})
	go func() {
		defer close(s.ended)
		_ = s.inner.Serve(s) // returns after Close or the shutdown of hs
	}()
	return s
}

// take serves a connection of the other server until the connection ends.
func (s *HTTP2) take(_ *http.Server, c *tls.Conn, _ http.Handler) {
	state := c.ConnectionState()
	f := &frameConn{Conn: c, state: &state, pool: &s.pool, limit: s.limit, closed: make(chan struct{}), below: below(c)}
	if !mayCarryHTTP2(state) {
		_, _ = f.send([]byte(inadequate)) // the connection ends, with or without an error
		return
	}
	select {
	case s.conns <- f:
		<-f.closed
	case <-s.gone:
	}
}

// End ends what ServeHTTP2 has started.
func (s *HTTP2) End() {
	_ = s.inner.Close() // the error is that of the listener, which is s
	<-s.ended
}

// Accept implements net.Listener.
func (s *HTTP2) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.gone:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *HTTP2) Close() error {
	s.stop.Do(func() { close(s.gone) })
	return nil
}

// Addr implements net.Listener.
func (s *HTTP2) Addr() net.Addr { return &net.UnixAddr{Name: "h2", Net: "h2"} }

// frameKey is the key of the *frameConn in the context of a request over HTTP/2.
type frameKey struct{}

// inadequate is a GOAWAY frame with the code INADEQUATE_SECURITY, https://www.rfc-editor.org/rfc/rfc9113#section-6.8.
const inadequate = "\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x0c"

// mayCarryHTTP2 reports whether a connection is secure enough for HTTP/2. With TLS 1.2,
// https://www.rfc-editor.org/rfc/rfc9113#section-9.2 requires a cipher suite with ephemeral keys and authenticated encryption.
func mayCarryHTTP2(state tls.ConnectionState) bool {
	switch state.Version {
	case tls.VersionTLS13:
		return true
	case tls.VersionTLS12:
		switch state.CipherSuite {
		case tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
			return true
		}
	}
	return false
}

// withTLS sets the TLS state of requests over HTTP/2 to that of their connection.
func withTLS(next http.Handler) http.Handler {
	if h, ok := next.(*requests); ok {
		return &requests{next: h.next, h2: true}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		completeTLS(r)
		next.ServeHTTP(w, r)
	})
}
