package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/keelson-dev/keelson/server/credentials"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/server/internal/transport"
	"go.uber.org/zap"
)

// ListenAndServe is the main function of a program that is one server: it makes a server with New, installs the extensions, and
// runs it until the process gets an interrupt (SIGINT) or is asked to terminate (SIGTERM). It returns the error of New, Install
// or Run. After a signal it returns nil when the server has ended. A second signal ends the process at once.
func ListenAndServe(opts Options, extensions ...Extension) error {
	ctx, stop := untilSignal()
	defer stop()
	s, err := New(opts)
	if err != nil {
		return err
	}
	for _, e := range extensions {
		if err := s.Install(e); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return s.Run(ctx)
}

// untilSignal returns a context that ends with the first signal that asks the process to end. When it ends, signals have their usual
// effect again. stop ends it without a signal.
func untilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(done)
		select {
		case <-signals:
		case <-ctx.Done():
		}
		signal.Stop(signals) // before cancel, so that a signal that comes after the end of ctx has its usual effect
		cancel()
	}()
	return ctx, func() { cancel(); <-done }
}

// Run listens on Serving.Listen and serves until ctx ends; see Serve.
func (s *Server) Run(ctx context.Context) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", s.opts.Serving.Listen)
	if err != nil {
		return errors.Join(fmt.Errorf("server: listen on %s: %w", s.opts.Serving.Listen, err), s.Close())
	}
	return s.serveAt(ctx, ln, reachedAt(s.opts.Serving.Listen, ln.Addr()))
}

// reachedAt returns the address at which clients reach a server that listens on listen and has the address addr. If listen has a
// DNS name, the result has it, too: the certificate is valid for the name, and need not be valid for the address.
func reachedAt(listen string, addr net.Addr) string {
	host, _, err := net.SplitHostPort(listen)
	if _, notIP := netip.ParseAddr(host); err == nil && host != "" && notIP != nil {
		if _, port, err := net.SplitHostPort(addr.String()); err == nil {
			return net.JoinHostPort(strings.TrimSuffix(host, "."), port)
		}
	}
	return credentials.DialableHost(addr)
}

// Serve serves TLS on ln until ctx ends, and then ends the server: /readyz fails, and Serving.ShutdownDelay later watches end
// cleanly, new requests are refused, requests that have begun finish within Limits.RequestTimeout, and the storage is closed. Then Serve returns nil. If
// the server fails or cannot be closed, Serve returns the error. In any case it closes ln. A server serves once: a second call of
// Run or Serve returns an error, and has no effect on the first.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	return s.serveAt(ctx, ln, credentials.DialableHost(ln.Addr()))
}

// serveAt is Serve for clients that reach ln at host, "host:port".
func (s *Server) serveAt(ctx context.Context, ln net.Listener, host string) error {
	if s.serves.Swap(true) {
		return errors.Join(errors.New("server: a server serves once, and this one does already, or has: make another with New"), ln.Close())
	}
	errorLog := s.httpLog()
	errorLog = log.New(s.metrics.ServerErrors(errorLog.Writer()), errorLog.Prefix(), errorLog.Flags())
	hs := &http.Server{
		Handler:           transport.Requests(s.handler),
		ConnContext:       transport.ConnContext,
		TLSConfig:         s.tlsConfig(),
		ReadHeaderTimeout: s.opts.Limits.HeaderTimeout, // also bounds TLS handshakes
		IdleTimeout:       s.opts.Limits.IdleTimeout,
		MaxHeaderBytes:    s.opts.Limits.MaxHeaderBytes,
		ErrorLog:          errorLog,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100,
			// A connection has a buffer for the largest frame that the server allows its client to send. The default is 1 MiB.
			MaxReadFrameSize: 64 << 10,
		},
	}
	// The deadline of a stream cannot end a write that blocks the whole connection. This timeout can.
	h2 := transport.ServeHTTP2(hs, s.opts.Limits.WriteTimeout)
	failed := make(chan error, 1)
	go func() {
		failed <- hs.ServeTLS(transport.NewListener(ln, s.opts.Limits.WriteTimeout, s.connections), "", "")
	}()
	url := cmp.Or(s.opts.Serving.URL, "https://"+host)
	s.url.Store(&url)
	err := s.untilEnd(ctx, url, failed)
	s.opts.Observe.Logger.Info("stopping")
	if first := !s.leaving.Swap(true); first && err == nil && ctx.Err() != nil {
		s.delay(context.Background(), failed)
	}
	s.drain(hs)
	h2.End()
	if serveErr := <-failed; err == nil && !errors.Is(serveErr, http.ErrServerClosed) {
		err = serveErr
	}
	err = errors.Join(err, s.Close())
	s.opts.Observe.Logger.Info("stopped", zap.Error(err))
	return err
}

// untilEnd announces the server, and waits until ctx or the server ends, or a hook or the listener fails, also before the server is
// ready. The error is that of a failure.
func (s *Server) untilEnd(ctx context.Context, url string, failed chan error) error {
	begun, cancel := context.WithCancel(ctx)
	announced := make(chan struct{})
	var err error // of announce
	go func() {
		defer close(announced)
		err = s.announce(begun, url)
	}()
	defer func() {
		cancel()
		<-announced
	}()
	for wait := announced; ; {
		select {
		case <-wait:
			if wait = nil; err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		case <-s.life.Done(): // Close was called
			return nil
		case err := <-s.failure:
			return err
		case err := <-failed:
			failed <- err
			return err
		}
	}
}

// announce writes the kubeconfig, waits until the server is ready, and then logs that and calls Serving.Ready. If the server ends
// before it is ready, announce returns nil without the call.
func (s *Server) announce(ctx context.Context, url string) error {
	var path string
	if s.opts.Serving.Kubeconfig != "" {
		var err error
		if path, err = s.creds.WriteKubeconfig(s.opts.Serving.Kubeconfig, url, s.authorities()...); err != nil {
			return err
		}
	}
	if !s.waitReady(ctx) {
		return nil
	}
	limits := []zap.Field{
		zap.String("url", url), zap.Int64("connections", s.opts.Limits.Connections.All), zap.Int64("watches", s.opts.Limits.Watches.All),
		zap.Int64("requestBytes", s.opts.Limits.Bytes.All),
	}
	if memory, ok := memoryLimit(); ok {
		limits = append(limits, zap.Int64("GOMEMLIMIT", memory))
	}
	s.opts.Observe.Logger.Info("serving", limits...)
	if s.opts.Serving.Ready != nil {
		s.opts.Serving.Ready(url, path)
	}
	return nil
}

// authorities returns what the kubeconfig trusts beside the CA of Credentials.
func (s *Server) authorities() [][]byte {
	if len(s.opts.Serving.Authorities) == 0 {
		return nil
	}
	return [][]byte{s.opts.Serving.Authorities}
}

// delay calls the functions of BeforeStop, and serves as before for Serving.ShutdownDelay, or until ctx ends, Close is called or the
// listener fails.
func (s *Server) delay(ctx context.Context, failed chan error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.stop(ctx)
	}()
	defer func() { <-stopped }()
	select {
	case <-time.After(s.opts.Serving.ShutdownDelay):
	case <-ctx.Done():
	case err := <-failed:
		failed <- err
	}
}

// stop calls the functions that BeforeStop has added, all at the same time, and returns when they have returned. If some have not
// returned lastMoment after the end of their context, it logs their names and returns without them.
func (s *Server) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limits.RequestTimeout)
	defer cancel()
	s.hooks.mu.Lock()
	stops := slices.Clone(s.hooks.stops)
	s.hooks.mu.Unlock()
	running, ended := map[int]string{}, make(chan int, len(stops))
	for i, one := range stops {
		running[i] = one.name
		go func() {
			if err := guarded(ctx, s.panics, one.run); err != nil {
				s.opts.Observe.Logger.Error("a function before the stop failed", zap.String("name", one.name), zap.Error(err))
			}
			ended <- i
		}()
	}
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastMoment, func() { close(late) }) })()
	for len(running) > 0 {
		select {
		case i := <-ended:
			delete(running, i)
		case <-late:
			names := slices.Sorted(maps.Values(running))
			s.opts.Observe.Logger.Error("functions before the stop have not returned", zap.Strings("names", names))
			return
		}
	}
}

// drain ends watches, lets other requests finish, and closes the connections.
func (s *Server) drain(hs *http.Server) {
	grace := s.opts.Serving.ShutdownWatchGrace
	s.draining.Store(true)
	if grace == 0 {
		s.end()
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(s.opts.Limits.RequestTimeout, grace))
	defer cancel()
	s.requests.Close()
	watchless, drained := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(drained)
		if grace > 0 {
			s.endWatches(ctx, grace)
		}
		close(watchless)
		if s.requests.Wait(ctx) != nil {
			return // the time is over, or all connections are closed
		}
		s.awaitWatches(ctx)
		select {
		case <-time.After(s.opts.Serving.CloseDelay):
			cancel() // connections that are still open have no request
		case <-ctx.Done():
		}
	}()
	if s.opts.Serving.ShutdownRetryAfter {
		_ = s.requests.Wait(ctx) // Shutdown has the same error
	}
	if err := hs.Shutdown(ctx); err != nil {
		_ = hs.Close() // the error is that of listeners, which Shutdown has closed already
	}
	<-watchless // Shutdown does not wait for WebSockets
	cancel()
	<-drained
	s.endLasting()
}

// endLasting ends the requests that last and have not ended with the others.
func (s *Server) endLasting() {
	ctx, cancel := context.WithTimeout(context.Background(), lastMoment)
	defer cancel()
	s.lasting.End(ctx)
}

// endWatches ends the watches over a time, or when ctx or the server ends, and then all that ends with the server.
func (s *Server) endWatches(ctx context.Context, grace time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	s.lasting.EndWatches(ctx, grace)
	s.end()
}

// awaitWatches waits until the watches, which end by themselves, have written their ends. A client that does not read holds it for
// CloseDelay, or for a tenth of a second if that is longer.
func (s *Server) awaitWatches(ctx context.Context) {
	end := time.Now().Add(max(s.opts.Serving.CloseDelay, time.Second/10))
	for pauses := background.Doubling(time.Millisecond, 10*time.Millisecond); s.watches.Held() > 0 && time.Now().Before(end); {
		select {
		case <-time.After(pauses.Step()):
		case <-ctx.Done():
			return
		}
	}
}

// Close ends the server, whether it is served or not; Run or Serve then returns. Watches end, Close waits for background work,
// and the caches and the storage are closed. Close does not wait for requests, which then fail: see [Server.Shutdown]. Each call
// of Close returns the error of closing the storage.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.end()
		s.mu.Lock()   // a start of work has ended, or sees that the server has ended
		s.mu.Unlock() //nolint:staticcheck // nothing is to be done in between
		s.background.Wait()
		if s.loopback != nil {
			s.loopback.close() // after the background work, which may be its client
		}
		s.endProbes()
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
