// Package servertest runs a whole server in memory for a test: the handlers, registry and storage of production,
// over an in-memory transport, in milliseconds.
//
//	srv := servertest.New(t, server.Group{...})
//	resp, err := srv.Client().Get(srv.URL + "/apis/example.com/v1/widgets")
//
// A server ends with its test, which fails if the server leaves a goroutine behind or ends with an error. Servers
// share nothing, so tests that use them may be parallel.
package servertest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
)

// Server is a running server and what a client needs to reach it.
type Server struct {
	*server.Server
	// URL is the server's address, "https://keelson.test": dialled by DialContext, not by the network.
	URL string
	// CA signed the server's certificate, in PEM; Token is the administrator's.
	CA    []byte
	Token string

	listener *listener
	label    string // of the goroutines that the server starts
	stop     func()
	tls      *tls.Config
}

// host is in every certificate the fixture makes.
const host = "localhost"

// New runs a server in memory that serves groups.
func New(t testing.TB, groups ...server.Group) *Server {
	t.Helper()
	return Start(t, server.Options{Groups: groups})
}

// Start runs a server with options of the test's own; without Storage its objects are in memory.
func Start(t testing.TB, opts server.Options) *Server {
	t.Helper()
	s := &Server{URL: "https://" + host, listener: newListener()}
	s.label = fmt.Sprintf("%s@%p", t.Name(), s)
	ready, served := make(chan struct{}), make(chan error, 1)
	if opts.CloseDelay == 0 {
		opts.CloseDelay = time.Millisecond // what is written to a pipe has been read
	}
	then := opts.Ready
	opts.Ready = func(url, kubeconfig string) {
		if then != nil {
			then(url, kubeconfig)
		}
		close(ready)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.labelled(ctx, func(ctx context.Context) {
		srv, err := server.New(opts)
		if err != nil {
			cancel()
			t.Fatalf("servertest: %v", err)
		}
		s.Server = srv
		go func() { served <- srv.Serve(ctx, s.listener) }()
	})
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("servertest: the server ended with an error: %v", err)
		}
		if left := leaked(s.label); left != "" {
			t.Errorf("servertest: the server left goroutines behind:\n%s", left)
		}
	})
	t.Cleanup(s.Stop)
	select {
	case <-ready:
	case err := <-served:
		served <- err
		t.Fatalf("servertest: the server did not start: %v", err)
	}
	creds := s.Credentials()
	s.CA, s.Token = creds.CAPEM, creds.Token
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.CA)
	s.tls = &tls.Config{RootCAs: pool, ServerName: host, MinVersion: tls.VersionTLS12}
	return s
}

// labelled runs f so that the goroutines it starts, and those that they start, can be told from others: goroutines
// inherit the labels of the one that starts them.
func (s *Server) labelled(ctx context.Context, f func(ctx context.Context)) {
	pprof.Do(ctx, pprof.Labels("servertest", s.label), f)
}

// Install adds an extension, whose goroutines are the server's own.
func (s *Server) Install(e server.Extension) (err error) {
	s.labelled(context.Background(), func(context.Context) { err = s.Server.Install(e) })
	return err
}

// Stop ends the server before its test does, and waits for it.
func (s *Server) Stop() { s.stop() }

// DialContext opens a connection to the server, whatever address is asked for.
func (s *Server) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	return s.listener.dial(ctx)
}

// Transport is a RoundTripper that reaches the server over HTTP/2 and sends no credentials. The caller closes its
// idle connections.
func (s *Server) Transport() *http.Transport {
	return &http.Transport{DialContext: s.DialContext, TLSClientConfig: s.tls.Clone(), ForceAttemptHTTP2: true}
}

// Client is an HTTP client whose requests are the administrator's.
func (s *Server) Client() *http.Client {
	return &http.Client{Transport: bearer{s.Token, s.Transport()}}
}

// Anonymous is an HTTP client without credentials.
func (s *Server) Anonymous() *http.Client { return &http.Client{Transport: s.Transport()} }

// Kubeconfig writes a kubeconfig for the server into the test's directory and returns its path. Its address can
// only be dialled with DialContext.
func (s *Server) Kubeconfig(t testing.TB) string {
	t.Helper()
	path, err := s.Credentials().WriteKubeconfig(filepath.Join(t.TempDir(), "kubeconfig"), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// bearer adds a token to requests.
type bearer struct {
	token string
	next  *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (b bearer) CloseIdleConnections() { b.next.CloseIdleConnections() }

// leaked waits for the goroutines of a server that has ended, a bounded time, and describes those that stay.
func leaked(label string) string {
	var left string
	for wait := time.Millisecond; wait < 3*time.Second; wait *= 2 {
		if left = labelled(label); left == "" {
			return ""
		}
		time.Sleep(wait)
	}
	return left
}

// labelled describes the goroutines that carry a label.
func labelled(label string) string {
	var all, out strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return err.Error()
	}
	want := fmt.Sprintf("%q:%q", "servertest", label)
	for group := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(group, want) {
			out.WriteString(group + "\n\n")
		}
	}
	return out.String()
}

// listener hands out both ends of in-memory connections.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newListener() *listener {
	return &listener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *listener) dial(ctx context.Context) (net.Conn, error) {
	client, srv := net.Pipe()
	select {
	case l.conns <- srv:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "memory" }
func (addr) String() string  { return host + ":443" }
