package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/keelson-dev/keelson/server/credentials"
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

// Serve serves TLS on ln until ctx ends, and then ends the server: /readyz fails, the functions of Host.BeforeStop are called, and
// Serving.ShutdownDelay later new requests are refused, watches end cleanly, requests that have begun finish within
// Limits.RequestTimeout, and the storage is closed. ln is closed when new requests are refused, or with Serving.ShutdownRetryAfter when
// requests and watches have ended. Then Serve returns nil. If the server fails or cannot be closed, Serve returns the error. In any case
// it closes ln. A server serves once: a second call of Run or Serve returns an error, and has no effect on the first.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	return s.serveAt(ctx, ln, credentials.DialableHost(ln.Addr()))
}

// serveAt is Serve for clients that reach ln at host, "host:port".
func (s *Server) serveAt(ctx context.Context, ln net.Listener, host string) error {
	if s.serves.Swap(true) {
		return errors.Join(errors.New("server: a server serves once, and this one does already, or has: make another with New"), ln.Close())
	}
	url := cmp.Or(s.opts.Serving.URL, "https://"+host)
	s.url.Store(&url)
	at := s.serveTLS(ln)
	err := s.untilEnd(ctx, url, at)
	s.opts.Observe.Logger.Info("stopping")
	unfinished, closeErr := s.finish(context.Background(), at, err != nil)
	if unfinished != nil {
		s.opts.Observe.Logger.Warn("some requests have not finished", zap.Error(unfinished))
	}
	if listenErr := at.failure(); err == nil {
		err = listenErr
	}
	err = errors.Join(err, closeErr)
	s.opts.Observe.Logger.Info("stopped", zap.Error(err))
	return err
}

// untilEnd announces the server, and waits until ctx or the server ends, or a hook or the listener fails, also before the server is
// ready. The error is that of a failure.
func (s *Server) untilEnd(ctx context.Context, url string, at *served) error {
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
		case <-at.over:
			return at.failure()
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
