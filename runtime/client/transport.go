package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	maxIdle       = 25
	idleTimeout   = 90 * time.Second
	tlsTimeout    = 10 * time.Second
	maxHeader     = 1 << 20
	http2Silence  = 30 * time.Second // after which a connection is asked whether it is alive,
	http2PingTime = 15 * time.Second // and how long it has to answer
	maxRedirects  = 10
)

func newTransport(cfg Config, id *identity, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	secure := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cfg.ServerName, InsecureSkipVerify: cfg.Insecure}
	if len(cfg.CA) > 0 {
		secure.RootCAs = x509.NewCertPool()
		secure.RootCAs.AppendCertsFromPEM(cfg.CA)
	}
	if id.pair != nil {
		secure.GetClientCertificate = id.certificate
	}
	proxy := cfg.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	t := &http.Transport{
		Proxy: proxy, DialContext: dial, TLSClientConfig: secure, TLSHandshakeTimeout: tlsTimeout,
		DisableCompression: cfg.DisableCompression, MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout,
		Protocols: new(http.Protocols),
		HTTP2:     &http.HTTP2Config{SendPingTimeout: http2Silence, PingTimeout: http2PingTime},
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(true)
	return t
}

// sameServer follows redirects within a server. Credentials are for the server that was configured.
func sameServer(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= maxRedirects:
		return errors.New("the server redirects too often")
	case req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme:
		return errors.New("the server redirects to another server, which is not followed: credentials are for the one that is configured")
	}
	return nil
}

// connections are all that a Client has open. An http.Transport may go on connecting after the request that needed the
// connection is gone, and closes only connections that are idle; so all are closed here.
type connections struct {
	life context.Context
	open func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex // guards closed and all
	closed bool
	all    map[*connection]struct{}
	dials  sync.WaitGroup // Add under mu, while not closed
}

type connection struct {
	net.Conn
	of *connections
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
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
		return nil, ErrClosed
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

// close closes all connections and waits for those being opened, which fail.
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
