package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// transport is what reaches one target. Its connections stay for the next call.
type transport struct {
	key      key
	client   *http.Client
	base     *http.Transport
	identity Identity

	calls int       // under way; guarded by the mu of the Caller, as the next is
	used  time.Time // when a call began last
}

const (
	maxIdle       = 25 // connections to a target, as in kube-apiserver
	idleTimeout   = 90 * time.Second
	tlsTimeout    = 10 * time.Second
	http2Silence  = 30 * time.Second // after which a connection is asked whether it is alive,
	http2PingTime = 15 * time.Second // and how long it has to answer
)

func newTransport(c *Caller, k key, to *target) (*transport, error) {
	t := &transport{key: k}
	if c.opts.Identify != nil {
		var err error
		if t.identity, err = c.opts.Identify(to.hostPort); err != nil {
			return nil, fmt.Errorf("webhook: who this server is to %s: %w", to.hostPort, err)
		}
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: to.roots(), GetClientCertificate: t.identity.Certificate}
	t.base = &http.Transport{
		Proxy: c.opts.Proxy, DialContext: c.conns.dial, TLSClientConfig: secure, TLSHandshakeTimeout: tlsTimeout,
		MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout,
	}
	var rt http.RoundTripper = t.base
	if to.service != nil {
		secure.ServerName = to.service.domain()
		if c.opts.Resolve != nil {
			rt = &resolving{next: t.base, service: to.service, resolve: c.opts.Resolve}
		}
	}
	t.base.Protocols = new(http.Protocols)
	t.base.Protocols.SetHTTP1(true)
	if to.local() {
		t.base.Protocols.SetHTTP2(true)
		t.base.HTTP2 = &http.HTTP2Config{SendPingTimeout: http2Silence, PingTimeout: http2PingTime}
	} else {
		secure.NextProtos = []string{"http/1.1"}
	}
	t.client = &http.Client{Transport: rt}
	return t, nil
}

// resolving sends requests to where a service is at that time.
type resolving struct {
	next    http.RoundTripper
	service *Service
	resolve func(ctx context.Context, namespace, name string, port int32) (string, error)
}

func (r *resolving) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != r.service.hostPort() { // a redirect
		return r.next.RoundTrip(req)
	}
	address, err := r.resolve(req.Context(), r.service.Namespace, r.service.Name, r.service.port())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	there := req.Clone(req.Context())
	if there.Host == "" {
		there.Host = req.URL.Host
	}
	there.URL.Host = address
	return r.next.RoundTrip(there)
}

// connections are all that a Caller has open. An http.Transport may go on connecting after the request is gone that it did so
// for, and keeps connections of which it does not know yet that they are idle; so they are closed here.
type connections struct {
	life context.Context
	open func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex // guards all below
	closed bool
	dials  sync.WaitGroup // Add under mu, while not closed
	all    map[*connection]struct{}
}

type connection struct {
	net.Conn
	of *connections
}

func newConnections(life context.Context, open func(ctx context.Context, network, address string) (net.Conn, error)) *connections {
	return &connections{life: life, open: open, all: map[*connection]struct{}{}}
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	c.dials.Add(1)
	c.mu.Unlock()
	defer c.dials.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	raw, err := c.open(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := &connection{Conn: raw, of: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = raw.Close()
		return nil, errClosed
	}
	c.all[conn] = struct{}{}
	return conn, nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.all, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// close closes all, and waits for who is connecting. The life is over.
func (c *connections) close() {
	c.mu.Lock()
	c.closed = true
	for conn := range c.all {
		_ = conn.Conn.Close()
	}
	clear(c.all)
	c.mu.Unlock()
	c.dials.Wait()
}
