package servertest

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/internal/memnet"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
)

// Server is a running server with the data that a client needs to reach it. Its methods may be called concurrently.
type Server struct {
	*server.Server
	// URL is the server's address for connections that DialContext opens. The network does not reach it: see Listen.
	URL string
	// CA is the certificate in PEM that signed the server's certificate.
	CA []byte
	// Token is the bearer token of the administrator.
	Token string

	listener   *memnet.Listener
	intercept  interceptor
	users      users
	label      string        // label of the goroutines that the server starts
	closeLimit time.Duration // how long Close may take; set before Close can be called
	close      func() error
	tls        *tls.Config
	shared     *http.Transport // transport of all Clients

	mu      sync.Mutex // guards the fields below
	network string     // the address that Listen opened, or ""
}

// readyWithin is how long a server may take to become ready. endsWithin is how long its end may take, not counting the requests
// in flight. A server that takes longer hangs, and these limits report that before the timeout of the test does.
const readyWithin, endsWithin = 30 * time.Second, 10 * time.Second

// host is a name in every certificate that this package makes.
const host = "localhost"

// New runs a server in memory for a test. The server ends with the test. The test fails if the server is not ready within half a
// minute, leaves a goroutine behind or ends with an error. Each part adds something to the server: a server.Group, [Types], or
// any other extension, such as builtin.New.
func New(t testing.TB, parts ...server.Extension) *Server {
	t.Helper()
	return Start(t, server.Options{}, parts...)
}

// Start is New with options. By default the objects are stored in memory, and CloseDelay is a millisecond. The administrator and
// the users of [Server.AddUser] are accepted in addition to the users of o.Policy, even if o.Policy.Authenticator refuses their
// tokens or o.Policy.NoAdministrator is set. Only o.Policy.WrapAuthenticator can leave them out. Without a Logger, errors are
// logged to t: panics with their stacks, and answers with a 5xx code.
func Start(t testing.TB, o server.Options, parts ...server.Extension) *Server {
	t.Helper()
	if o.Observe.Logger == nil {
		o.Observe.Logger = zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel))
	}
	s, err := run(t.Name(), o, parts)
	if err != nil {
		t.Fatalf("servertest: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("servertest: %v", err)
		}
	})
	return s
}

// Run is Start without a test, for example for a TestMain that serves for a whole package. The caller must call Close.
func Run(o server.Options, parts ...server.Extension) (*Server, error) {
	s, err := run("Run", o, parts)
	if err != nil {
		return nil, fmt.Errorf("servertest: %w", err)
	}
	return s, nil
}

func run(name string, o server.Options, parts []server.Extension) (*Server, error) {
	s := &Server{URL: "https://" + host, listener: memnet.NewListener(host + ":443"), closeLimit: endsWithin}
	s.label = fmt.Sprintf("%s@%p", name, s)
	ready, served := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	s.labelled(ctx, func(ctx context.Context) {
		if err = s.build(o, parts, ready); err == nil {
			go func() { served <- s.Serve(ctx, s.listener) }()
		}
	})
	if err != nil {
		cancel()
		return nil, err
	}
	s.close = sync.OnceValue(func() error {
		cancel()
		ended, err := s.await(served)
		if err != nil && ended {
			err = fmt.Errorf("the server ended with an error: %w", err)
		}
		err = errors.Join(err, s.intercept.err())
		if !ended {
			return err
		}
		if left := leaked(s.label); left != "" {
			err = errors.Join(err, fmt.Errorf("the server left goroutines behind:\n%s", left))
		}
		return err
	})
	timer := time.NewTimer(readyWithin)
	defer timer.Stop()
	select {
	case <-ready:
		s.closeLimit += cmp.Or(o.Limits.RequestTimeout, time.Minute) // the default timeout
		return s, nil
	case <-timer.C:
		return nil, fmt.Errorf("the server is not ready after %s: %w", readyWithin, errors.Join(s.unready(ctx), s.Close()))
	case err := <-served:
		served <- err
		return nil, fmt.Errorf("the server did not start: %w", errors.Join(err, s.Close()))
	}
}

// await waits for the server's end and returns its error. If the server does not end in time, ended is false and the error lists
// the remaining goroutines.
func (s *Server) await(end <-chan error) (ended bool, err error) {
	timer := time.NewTimer(s.closeLimit)
	defer timer.Stop()
	select {
	case err := <-end:
		return true, err
	case <-timer.C:
		return false, fmt.Errorf("the server does not end. After %s these goroutines of it are left, one of which does not return when its context or its request ends:\n%s",
			s.closeLimit, labelled(s.label))
	}
}

// unready returns the reason why the server is not ready.
func (s *Server) unready(ctx context.Context) error {
	const moment = time.Second
	ask, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	why := make(chan error, 1)
	s.labelled(ask, func(ask context.Context) { go func() { why <- s.CheckReady(ask) }() })
	select {
	case err := <-why:
		if err == nil {
			return errors.New("every health check passes now; perhaps Serving.Ready does not return")
		}
		return err
	case <-time.After(2 * moment):
		return errors.New("a health check does not return when its context ends")
	}
}

// build makes the server with all its parts. Groups are served together, because one may have the hub of a kind of another. The
// other parts are installed after them, in order.
func (s *Server) build(o server.Options, parts []server.Extension, ready chan<- struct{}) error {
	o.Groups = slices.Clone(o.Groups)
	var others []server.Extension
	for _, p := range parts {
		if g, ok := p.(server.Group); ok {
			o.Groups = append(o.Groups, g)
		} else {
			others = append(others, p)
		}
	}
	if o.Serving.CloseDelay == 0 {
		o.Serving.CloseDelay = time.Millisecond // net/http needs it to write the last answers
	}
	onReady := o.Serving.Ready
	o.Serving.Ready = func(url, kubeconfig string) {
		if onReady != nil {
			onReady(url, kubeconfig)
		}
		close(ready)
	}
	s.intercept.maxBody = o.Limits.MaxBodyBytes
	var wrong error // the error of the program's Filters
	arrange, trusted := o.Serving.Filters, o.Serving.TrustFilters
	o.Serving.TrustFilters = true // needed for the filters of recordings and faults
	o.Serving.Filters = func(list []server.NamedFilter) []server.NamedFilter {
		switch {
		case arrange != nil && trusted:
			list = arrange(list)
		case arrange != nil:
			if list, wrong = server.Rearrange(list, arrange); wrong != nil {
				return list
			}
		}
		return s.intercept.filters(list)
	}
	if o.Storage == nil {
		o.Storage = memory.Open()
	}
	o.Storage = s.intercept.opener(o.Storage)
	wrap := o.Policy.WrapAuthenticator
	o.Policy.WrapAuthenticator = func(a authn.Authenticator) authn.Authenticator {
		s.users.known = a
		whole := authn.Authenticator(&s.users)
		if wrap != nil {
			if whole = wrap(whole); whole == nil {
				return nil
			}
		}
		return identified{whole}
	}
	var err error
	s.Server, err = server.New(o)
	if err = cmp.Or(wrong, err); err != nil {
		if s.Server != nil {
			err = errors.Join(err, s.Server.Close())
		}
		return err
	}
	creds := s.Credentials()
	if o.Policy.NoAdministrator { // the server does not accept the administrator of this package
		s.users.add(creds.Token, authn.User{Name: creds.User, Groups: slices.Clone(creds.Groups)})
	}
	for _, p := range others {
		if err := s.Server.Install(p); err != nil {
			closed := make(chan error, 1)
			s.labelled(context.Background(), func(context.Context) { go func() { closed <- s.Server.Close() }() })
			_, late := s.await(closed)
			return errors.Join(err, late)
		}
	}
	s.CA, s.Token = creds.CAPEM, creds.Token
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.CA)
	s.tls = &tls.Config{RootCAs: pool, ServerName: host, MinVersion: tls.VersionTLS12}
	s.shared = s.Transport()
	return nil
}

// Install adds an extension. Its goroutines count as the server's own.
func (s *Server) Install(e server.Extension) (err error) {
	s.labelled(context.Background(), func(context.Context) { err = s.Server.Install(e) })
	return err
}

// Close ends the server and waits for it and all its goroutines. Watches end at once. Close waits for requests in flight up to
// their timeout, and some seconds for the rest. The error is that of the server, or lists the remaining goroutines. Every later
// call returns the same error.
func (s *Server) Close() error { return s.close() }

// DialContext opens a connection to the server. The address is ignored.
func (s *Server) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	return s.listener.DialContext(ctx, "", "")
}

// Listen makes the server reachable at a free port of the loopback interface too, until it is closed, for kubectl and other
// processes. It returns the URL, for which the certificate is valid; a second call returns the same URL.
func (s *Server) Listen(ctx context.Context) (url string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.network != "" {
		return s.network, nil
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("servertest: listen: %w", err)
	}
	s.labelled(ctx, func(context.Context) { err = s.listener.Add(ln) })
	if err != nil {
		return "", fmt.Errorf("servertest: listen: the server has ended: %w", err)
	}
	s.network = "https://" + ln.Addr().String()
	return s.network, nil
}

// Transport returns a transport that reaches the server over HTTP/2 and sends no credentials. The caller must close its idle
// connections. It references only the listener, so a transport that outlives its server holds little memory.
func (s *Server) Transport() *http.Transport {
	return &http.Transport{DialContext: s.listener.DialContext, TLSClientConfig: s.tls.Clone(), ForceAttemptHTTP2: true}
}

// Client returns an HTTP client that sends requests as the administrator. All clients of a server share their connections, also
// those of ClientOf and Anonymous, so a new client for each request is cheap.
func (s *Server) Client() *http.Client { return s.ClientOf(s.Token) }

// ClientOf returns an HTTP client that sends requests as the user with this token from AddUser.
func (s *Server) ClientOf(token string) *http.Client {
	return &http.Client{Transport: bearer{token, s.shared}}
}

// Anonymous returns an HTTP client without credentials.
func (s *Server) Anonymous() *http.Client { return &http.Client{Transport: s.shared} }

// Kubeconfig writes a kubeconfig of the administrator into a temporary directory of the test and returns its path. The kubeconfig
// has the URL that Listen returned. Without a call of Listen it has the field URL, which only DialContext can reach.
func (s *Server) Kubeconfig(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	url := cmp.Or(s.network, s.URL)
	s.mu.Unlock()
	path, err := s.Credentials().WriteKubeconfig(filepath.Join(t.TempDir(), "kubeconfig"), url)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// bearer is a transport that adds a token to requests.
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

// CloseIdleConnections implements the interface that http.Client.CloseIdleConnections uses.
func (b bearer) CloseIdleConnections() { b.next.CloseIdleConnections() }
