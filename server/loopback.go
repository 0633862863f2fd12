package server

import (
	"context"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/internal/memnet"
	"go.uber.org/zap"
)

// Loopback returns a transport for clients in the process of the server, such as those of client-go and controller-runtime:
//
//	config := &rest.Config{Host: "http://loopback", QPS: -1, Transport: srv.Loopback(authn.System())}
//
// Requests through the transport use no network, and pass the whole filter chain. The server takes them as requests of user, and
// ignores their credentials. user is copied, and becomes a member of system:authenticated. The authorizers decide what user may
// do. authn.System is a member of system:masters, so it may do everything unless Policy.Authorizer decides otherwise. If user is
// nil, each request is authenticated by its own credentials, such as a bearer token.
//
// The transport sends every request to this server: the scheme and the host of the URL are ignored. It may be used from New until
// the server ends, also while the server does not serve yet; afterwards its requests fail with syscall.ECONNREFUSED. Requests
// that have not ended two seconds after the end of the server are cut off. Clients may share the transport. Each call of Loopback
// returns another one, with connections of its own, which do not count for Limits.Connections. For kinds with Go types, [Typed]
// needs no HTTP.
func (s *Server) Loopback(user *authn.User) http.RoundTripper {
	dial := s.loopback.dialer(user)
	return &http.Transport{
		DialContext: dial, DialTLSContext: dial,
		DisableCompression:  true, // compression costs more than the copies in memory
		MaxIdleConnsPerHost: maxIdleLoopbacks,
		IdleConnTimeout:     s.opts.Limits.IdleTimeout / 2, // so that the client closes idle connections, and not the server
	}
}

// maxIdleLoopbacks is the number of connections without a request that a transport keeps.
const maxIdleLoopbacks = 64

// loopback is an HTTP server for connections in memory. It begins to serve when the first transport is made.
type loopback struct {
	listener *memnet.Listener
	http     *http.Server
	begin    sync.Once
	serving  sync.WaitGroup // the goroutine that accepts
	conns    sync.WaitGroup // connections; added to by that goroutine
	requests sync.WaitGroup // requests, also those of hijacked connections; added to while their connection counts
	unused   sync.Map       // the connections (net.Conn) without a request so far
}

// loopbackUser is the key of the authentication of a connection, an *authn.Response, in the contexts of its requests.
type loopbackUser struct{}

// newLoopback makes the loopback of s, whose handler need not be built yet.
func newLoopback(s *Server) *loopback {
	l := &loopback{listener: memnet.NewListener("localhost:80")}
	l.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l.requests.Add(1)
			defer l.requests.Done()
			s.look()
			s.handler.ServeHTTP(w, r)
		}),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, loopbackUser{}, memnet.ValueOf(c))
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateNew {
				l.conns.Add(1)
				l.unused.Store(c, nil)
				return
			}
			l.unused.Delete(c)
			if state == http.StateClosed || state == http.StateHijacked {
				l.conns.Done()
			}
		},
		ReadHeaderTimeout: s.opts.Limits.HeaderTimeout,
		IdleTimeout:       s.opts.Limits.IdleTimeout,
		MaxHeaderBytes:    s.opts.Limits.MaxHeaderBytes,
		ErrorLog:          s.httpLog(),
	}
	return l
}

// httpLog returns a logger for the errors of an http.Server.
func (s *Server) httpLog() *log.Logger {
	l, err := zap.NewStdLogAt(s.opts.Observe.Logger, zap.DebugLevel)
	if err != nil {
		return log.Default()
	}
	return l
}

// dialer returns a function that opens connections for the requests of user.
func (l *loopback) dialer(user *authn.User) func(ctx context.Context, network, address string) (net.Conn, error) {
	l.begin.Do(func() { l.serving.Go(func() { _ = l.http.Serve(l.listener) }) })
	if user == nil {
		return l.listener.DialContext
	}
	own := &authn.Response{User: *user.Clone()}
	known, _ := authn.AuthenticatedGroup(authn.Func(func(*http.Request) (*authn.Response, error) { return own, nil })).Authenticate(nil)
	return l.listener.Dialer(known)
}

// endsWithin is the time that requests over the loopback have to end after the server has ended.
const endsWithin = 2 * time.Second

// close ends the loopback after the watches have ended: it waits for the requests, for endsWithin, closes all connections, and waits
// for their goroutines.
func (l *loopback) close() {
	l.begin.Do(func() {}) // it does not begin any more
	ctx, cancel := context.WithTimeout(context.Background(), endsWithin)
	defer cancel()
	l.unused.Range(func(c, _ any) bool { // Shutdown would wait for their first request
		_ = c.(net.Conn).Close()
		return true
	})
	_ = l.http.Shutdown(ctx)
	_ = l.http.Close()
	_ = l.listener.Close() // if it never served
	l.serving.Wait()
	l.conns.Wait()
	l.requests.Wait()
}

// loopbackUsers authenticates requests over the loopback by their connection, and all others by the authenticator next.
type loopbackUsers struct{ next authn.Authenticator }

// Authenticate implements authn.Authenticator.
func (l loopbackUsers) Authenticate(r *http.Request) (*authn.Response, error) {
	if known, ok := r.Context().Value(loopbackUser{}).(*authn.Response); ok {
		own := *known
		return &own, nil
	}
	return l.next.Authenticate(r)
}
