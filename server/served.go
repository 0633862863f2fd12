package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/server/internal/transport"
)

// served is the listener of a server with its connections. The zero served has none: it is that of a mounted server, whose
// connections are those of another http.Server.
type served struct {
	http  *http.Server // nil: none
	http2 *transport.HTTP2
	over  chan struct{} // closed when no connections are accepted any more
	err   error         // the reason for that; written before over is closed

	stops  sync.Once          // guards the call of http.Shutdown
	cutOff context.CancelFunc // ends the time that http.Shutdown gives to connections; set by stops
	closed chan struct{}      // closed when the listener is
	idle   chan struct{}      // closed when http.Shutdown has returned
}

// serveTLS begins to serve the handler of s on ln.
func (s *Server) serveTLS(ln net.Listener) *served {
	errorLog := s.httpLog()
	at := &served{
		http: &http.Server{
			Handler:           transport.Requests(s.handler),
			ConnContext:       transport.ConnContext,
			TLSConfig:         s.tlsConfig(),
			ReadHeaderTimeout: s.opts.Limits.HeaderTimeout, // also bounds TLS handshakes
			IdleTimeout:       s.opts.Limits.IdleTimeout,
			MaxHeaderBytes:    s.opts.Limits.MaxHeaderBytes,
			ErrorLog:          log.New(s.metrics.ServerErrors(errorLog.Writer()), errorLog.Prefix(), errorLog.Flags()),
			HTTP2: &http.HTTP2Config{
				MaxConcurrentStreams: 100,
				// A connection has a buffer for the largest frame that the server allows its client to send. The default is 1 MiB.
				MaxReadFrameSize: 64 << 10,
			},
		},
		over: make(chan struct{}), closed: make(chan struct{}), idle: make(chan struct{}),
	}
	at.http.RegisterOnShutdown(func() { close(at.closed) })
	// The deadline of a stream cannot end a write that blocks the whole connection. This timeout can.
	at.http2 = transport.ServeHTTP2(at.http, s.opts.Limits.WriteTimeout)
	go func() {
		defer close(at.over)
		at.err = at.http.ServeTLS(transport.NewListener(ln, s.opts.Limits.WriteTimeout, s.connections), "", "")
	}()
	return at
}

// failure returns the error of the listener when no connections are accepted any more; nil: it was closed by stopListening.
func (at *served) failure() error {
	<-at.over
	if errors.Is(at.err, http.ErrServerClosed) {
		return nil
	}
	return at.err
}

// stopListening closes the listener. From then on each connection is closed when its requests have ended.
func (at *served) stopListening() {
	if at.http == nil {
		return
	}
	at.stops.Do(func() {
		var ctx context.Context
		ctx, at.cutOff = context.WithCancel(context.Background())
		go func() {
			defer close(at.idle)
			_ = at.http.Shutdown(ctx) // the error is that of the listener, or says that connections are to be cut off
		}()
		<-at.closed
	})
}

// close closes the listener, if it is open, and the connections. Those that are open after the delay, or when ctx ends, are cut off.
func (at *served) close(ctx context.Context, delay time.Duration) {
	if at.http == nil {
		return
	}
	at.stopListening()
	select {
	case <-at.idle:
	case <-time.After(delay):
	case <-ctx.Done():
	}
	at.cutOff()
	<-at.idle
	_ = at.http.Close() // the error is that of listeners, which are closed already
	at.http2.End()
}

// tlsConfig offers HTTP/2 and HTTP/1.1.
func (s *Server) tlsConfig() *tls.Config {
	config := s.creds.TLSConfig()
	config.NextProtos = []string{"h2", "http/1.1"}
	if own := s.opts.Serving.Certificate; own != nil {
		config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c, err := own(hello); c != nil || err != nil {
				return c, err
			}
			return s.creds.Certificate(hello)
		}
	}
	return config
}
