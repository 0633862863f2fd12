package webhook

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime/internal/outbound"
)

// Options are the options of [New]. With the zero Options a Caller works like a kube-apiserver outside of a cluster. The
// functions are called concurrently.
type Options struct {
	// Resolve returns the address ("10.0.0.1:8443") at which a service is served now. It is called for each request. If it is
	// nil, the address is <name>.<namespace>.svc:<port>, which the DNS of a cluster resolves.
	Resolve func(ctx context.Context, namespace, name string, port int32) (address string, err error)
	// Dial opens connections. nil means a net.Dialer with a timeout of 30 seconds.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// DialFilter returns an error for an address that the server must not connect to, such as "127.0.0.1:22" or "[fd00::1]:443"
	// of the network "tcp4" or "tcp6". nil allows every address. It is called for each address after a name was resolved and
	// before the connection is made, so a name that resolves to another address the next time does not bypass the filter. If Dial
	// is set, Dial is called first, and the filter is called with the remote address of its connection, before anything is sent.
	// The filter sees the address of a proxy, but not the addresses that the proxy connects to.
	DialFilter func(network, address string) error
	// Proxy returns the proxy for a request, or nil. If Proxy is nil, no proxy is used with a DialFilter. Without a DialFilter it
	// is http.ProxyFromEnvironment, which uses no proxy for this machine.
	Proxy func(*http.Request) (*url.URL, error)
	// FollowRedirects makes a Caller follow up to ten redirects to any address. The webhook then decides which addresses the
	// server calls, also those that only this server can reach. Redirects from https to http are still refused. By default all
	// redirects are refused.
	FollowRedirects bool
	// ShowErrors makes Reason the text of an [Error]. Users who may define webhooks, or read their errors, then learn which
	// addresses and ports this server can reach, and what is served there. Set it only if these users may know that.
	ShowErrors bool
	// Identify returns the identity that this server presents to the webhook at hostPort ("hooks.example.com:443",
	// "name.namespace.svc:8443"). nil means none. It is called at the first call for a configuration. The result is kept until
	// the configuration is dropped: see [Caller].
	Identify func(hostPort string) (Identity, error)
	// Timeout limits a call, including the reading of the answer and all retries. 0 means 30 seconds.
	Timeout time.Duration
	// MaxAnswer limits the bytes of an answer's body, both as it is sent and after decompression. 0 means 16 MiB.
	MaxAnswer int64
	// MaxHeader limits the bytes of an answer's header. 0 means 64 KiB.
	MaxHeader int64
	// UserAgent is the User-Agent header of requests. "" means kube-apiserver-admission.
	UserAgent string
}

// Identity holds the credentials that a server presents to a webhook. The zero Identity has none.
type Identity struct {
	// Certificate returns the client certificate for a new connection, if the webhook requests one; see tls.Config. nil means no
	// certificate.
	Certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	// Authorization returns the Authorization header of a request ("Bearer ..."). The header is not sent to the target of a
	// redirect in another domain. nil, or a result of "", means no header.
	Authorization func(ctx context.Context) (string, error)
}

const (
	defaultTimeout   = 30 * time.Second
	defaultMaxAnswer = 16 << 20
	defaultMaxHeader = 64 << 10
	defaultUserAgent = "kube-apiserver-admission"
	maxTransports    = 200
	transportIdle    = 10 * time.Minute
)

// errClosed is returned by calls after Close.
var errClosed = errors.New("webhook: the caller is closed")

// Caller owns the connections to webhooks. Use [New] to make one. All methods may be called concurrently.
//
// Clients with equal configurations share connections. A connection that is idle for 90 seconds is closed. At each call, the
// Caller drops the configurations that were not used for ten minutes, with their connections and their [Identity]. If there are
// more than 200 configurations, it also drops the least recently used ones.
type Caller struct {
	opts  Options
	life  context.Context
	end   context.CancelCauseFunc
	conns *outbound.Connections

	mu         sync.Mutex // guards all fields below
	closed     bool
	calls      sync.WaitGroup // Add under mu, while not closed
	transports map[key]*list.Element
	order      list.List // of *transport, most recently used first
}

// New returns a Caller. Call Close when it is no longer needed.
func New(o Options) *Caller {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = defaultMaxAnswer
	}
	if o.MaxHeader <= 0 {
		o.MaxHeader = defaultMaxHeader
	}
	if o.UserAgent == "" {
		o.UserAgent = defaultUserAgent
	}
	if o.Proxy == nil && o.DialFilter == nil {
		o.Proxy = http.ProxyFromEnvironment
	}
	o.Dial = filteredDial(o.Dial, o.DialFilter)
	c := &Caller{opts: o, transports: map[key]*list.Element{}}
	c.life, c.end = context.WithCancelCause(context.Background())
	c.conns = outbound.NewConnections(c.life, o.Dial)
	return c
}

// Close cancels the calls in progress, waits for them, and closes all connections. Later calls fail.
func (c *Caller) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end(errClosed)
	c.calls.Wait()
	c.mu.Lock()
	for e := c.order.Front(); e != nil; e = e.Next() {
		transportOf(e).base.CloseIdleConnections()
	}
	c.order.Init()
	clear(c.transports)
	c.mu.Unlock()
	c.conns.Close()
}

// Client returns a client of the webhook, or an error if the configuration is not valid. It connects to nothing.
func (c *Caller) Client(cfg Config) (*Client, error) {
	t, err := cfg.target(c.opts.Timeout)
	if err != nil {
		return nil, err
	}
	return &Client{caller: c, target: t, key: t.key(), name: cfg.name()}, nil
}

// acquire begins a call: it returns the transport for the target, and a function that ends the call.
func (c *Caller) acquire(k key, to *target) (*transport, func(), error) {
	t, err := c.begin(k, nil)
	if t == nil && err == nil {
		var fresh *transport
		if fresh, err = newTransport(c, k, to); err == nil { // without mu, because it calls the program's Identify
			t, err = c.begin(k, fresh)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return t, func() {
		c.mu.Lock()
		t.calls--
		c.mu.Unlock()
		c.calls.Done()
	}, nil
}

// begin counts a call on the transport for a key. If there is none, it uses fresh; if fresh is nil too, it returns nil.
func (c *Caller) begin(k key, fresh *transport) (*transport, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	e, ok := c.transports[k]
	if !ok {
		if fresh == nil {
			return nil, nil
		}
		e = c.order.PushFront(fresh)
		c.transports[k] = e
	}
	t := transportOf(e)
	t.calls++
	t.used = time.Now()
	c.order.MoveToFront(e)
	c.dropIdle(t.used)
	c.calls.Add(1)
	return t, nil
}

// dropIdle drops unused transports that are too many or too old. The caller holds mu.
func (c *Caller) dropIdle(now time.Time) {
	for e := c.order.Back(); e != nil; {
		t, before := transportOf(e), e.Prev()
		if len(c.transports) <= maxTransports && now.Sub(t.used) < transportIdle {
			return
		}
		if t.calls == 0 {
			c.order.Remove(e)
			delete(c.transports, t.key)
			t.base.CloseIdleConnections()
		}
		e = before
	}
}

func transportOf(e *list.Element) *transport {
	t, _ := e.Value.(*transport)
	return t
}
