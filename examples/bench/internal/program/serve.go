package program

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// grace is how long requests may take to finish at the end. Watches never finish, and are ended after it.
const grace = time.Second

// Server describes how Serve serves a handler, for programs without a server of their own: with HTTP/2 and HTTP/1.1 over TLS,
// with the settings of Kubernetes' servers.
type Server struct {
	// Handler handles the requests.
	Handler   http.Handler
	Cert, Key []byte // PEM
	// End is called after grace, when the remaining requests must end; it may be nil.
	End func() error
}

// Serve serves on ln, which clients reach at url, until ctx ends. It prints the ready line at once. At the end it closes ln and
// the server, and returns an error if something failed.
func (p *Process) Serve(ctx context.Context, ln net.Listener, url string, s Server) error {
	hs, err := s.server()
	if err != nil {
		return errors.Join(err, ln.Close(), s.end())
	}
	failed := make(chan error, 1)
	go func() { failed <- hs.ServeTLS(ln, "", "") }() // ends with Shutdown
	p.Ready(url)
	select {
	case err := <-failed:
		return errors.Join(err, s.end())
	case <-ctx.Done():
	}
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	late := hs.Shutdown(soon)
	err = s.end()
	if late != nil {
		_ = hs.Close() // ignore its error: Shutdown has closed the listener
	}
	if ended := <-failed; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

func (s *Server) server() (*http.Server, error) {
	pair, err := tls.X509KeyPair(s.Cert, s.Key)
	if err != nil {
		return nil, fmt.Errorf("-cert and -key: %w", err)
	}
	return &http.Server{
		Handler: s.Handler,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"},
		},
		ReadHeaderTimeout: 32 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    1 << 20,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100,              // the same as kube-apiserver
			WriteByteTimeout:     30 * time.Second, // ends a connection whose client does not read
		},
	}, nil
}

func (s *Server) end() error {
	if s.End == nil {
		return nil
	}
	return s.End()
}
