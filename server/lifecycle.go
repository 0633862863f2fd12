package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/server/credentials"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/server/internal/transport"
	"go.uber.org/zap"
)

// Run listens on Serving.Listen and serves until ctx ends; see Serve.
func (s *Server) Run(ctx context.Context) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", s.opts.Serving.Listen)
	if err != nil {
		return errors.Join(fmt.Errorf("server: listen on %s: %w", s.opts.Serving.Listen, err), s.Close())
	}
	return s.serveAt(ctx, ln, reachedAt(s.opts.Serving.Listen, ln.Addr()))
}

// reachedAt is where clients reach a server that was told to listen on listen and got addr: at the DNS name it was
// told, since the certificate is valid for that and need not be for the address behind it, or else at the address.
func reachedAt(listen string, addr net.Addr) string {
	host, _, err := net.SplitHostPort(listen)
	if _, notIP := netip.ParseAddr(host); err == nil && host != "" && notIP != nil {
		if _, port, err := net.SplitHostPort(addr.String()); err == nil {
			return net.JoinHostPort(strings.TrimSuffix(host, "."), port)
		}
	}
	return credentials.DialableHost(addr)
}

// Serve serves TLS on ln until ctx ends, and then ends the server: /readyz fails, watches end cleanly at once, new
// requests are refused, requests under way finish within Limits.RequestTimeout, and the storage is closed. It
// returns nil after such an end, and otherwise what went wrong. It closes ln. A server serves once: a second Run or Serve
// is an error, and does nothing to the first.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	return s.serveAt(ctx, ln, credentials.DialableHost(ln.Addr()))
}

// serveAt is Serve for clients that reach ln at host, "host:port".
func (s *Server) serveAt(ctx context.Context, ln net.Listener, host string) error {
	if s.serves.Swap(true) {
		return errors.Join(errors.New("server: a server serves once, and this one does already, or has: make another with New"), ln.Close())
	}
	errorLog, err := zap.NewStdLogAt(s.opts.Observe.Logger, zap.DebugLevel)
	if err != nil {
		errorLog = log.Default()
	}
	errorLog = log.New(s.metrics.ServerErrors(errorLog.Writer()), errorLog.Prefix(), errorLog.Flags())
	hs := &http.Server{
		Handler:           transport.Requests(s.handler),
		ConnContext:       transport.ConnContext,
		TLSConfig:         s.tlsConfig(),
		ReadHeaderTimeout: s.opts.Limits.HeaderTimeout, // and that of TLS handshakes
		IdleTimeout:       s.opts.Limits.IdleTimeout,
		MaxHeaderBytes:    s.opts.Limits.MaxHeaderBytes,
		ErrorLog:          errorLog,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100,
			// A connection keeps room for a frame as large as its client has announced one; 1 MiB is the default.
			MaxReadFrameSize: 64 << 10,
		},
	}
	// The deadline of a stream cannot end a write that blocks its whole connection: the time that is given here does.
	h2 := transport.ServeHTTP2(hs, s.opts.Limits.WriteTimeout)
	failed := make(chan error, 1)
	go func() {
		failed <- hs.ServeTLS(transport.NewListener(ln, s.opts.Limits.WriteTimeout, s.connections), "", "")
	}()
	err = s.announce(ctx, "https://"+host)
	if err == nil {
		select {
		case <-ctx.Done():
		case <-s.life.Done(): // Close was called
		case err = <-failed:
			failed <- err
		}
	}
	s.opts.Observe.Logger.Info("stopping")
	s.drain(hs)
	h2.End()
	if serveErr := <-failed; err == nil && !errors.Is(serveErr, http.ErrServerClosed) {
		err = serveErr
	}
	err = errors.Join(err, s.Close())
	s.opts.Observe.Logger.Info("stopped", zap.Error(err))
	return err
}

// announce writes the kubeconfig and, unless the server ends before it is, says that it is ready.
func (s *Server) announce(ctx context.Context, url string) error {
	var path string
	if s.opts.Serving.Kubeconfig != "" {
		var err error
		if path, err = s.creds.WriteKubeconfig(s.opts.Serving.Kubeconfig, url); err != nil {
			return err
		}
	}
	if !s.waitReady(ctx) {
		return nil
	}
	s.opts.Observe.Logger.Info("serving", zap.String("url", url))
	if s.opts.Serving.Ready != nil {
		s.opts.Serving.Ready(url, path)
	}
	return nil
}

// waitReady returns when every check passes, or false as soon as ctx or the server ends.
func (s *Server) waitReady(ctx context.Context) bool {
	pauses := background.Doubling(time.Millisecond, time.Second)
	for {
		err := s.CheckReady(ctx)
		if err == nil || ctx.Err() != nil || s.life.Err() != nil {
			return err == nil
		}
		s.opts.Observe.Logger.Warn("not ready yet", zap.Error(err))
		select {
		case <-time.After(pauses.Step()):
		case <-ctx.Done():
		case <-s.life.Done():
		}
	}
}

// CheckReady asks what /readyz asks. The error is of the first check that fails: its name, and why, which /readyz withholds.
func (s *Server) CheckReady(ctx context.Context) error {
	for _, c := range s.health.of("readyz") {
		if err := c.Check(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// drain ends watches, lets requests finish and closes the connections.
func (s *Server) drain(hs *http.Server) {
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Limits.RequestTimeout)
	defer cancel()
	s.requests.Close()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		if s.requests.Wait(ctx) != nil {
			return // out of time, or all connections are closed
		}
		select {
		case <-time.After(s.opts.Serving.CloseDelay):
			cancel() // what is open still is idle: a connection without a request
		case <-ctx.Done():
		}
	}()
	if err := hs.Shutdown(ctx); err != nil {
		_ = hs.Close() // its error is that of listeners, closed by Shutdown already
	}
	cancel()
	<-drained
}

// Close ends a server that is not run: watches end, background work is waited for, caches and storage are closed. Run and
// Serve return after it. It returns the storage's error, each time it is called.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.end()
		s.mu.Lock()   // what starts work is done with it, or finds that the server has ended
		s.mu.Unlock() //nolint:staticcheck // nothing is to be done in between
		s.background.Wait()
		for _, p := range s.probes {
			p.close()
		}
		if s.set != nil {
			s.set.End()
		}
		s.mu.Lock()
		s.ended = true
		closers := s.closers
		s.mu.Unlock()
		for _, f := range slices.Backward(closers) {
			f()
		}
		if s.set != nil {
			s.set.Close()
		}
		if s.backend != nil {
			if err := s.backend.Close(); err != nil {
				s.closed = fmt.Errorf("server: close storage: %w", err)
			}
		}
	})
	return s.closed
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
