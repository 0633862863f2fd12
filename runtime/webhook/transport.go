package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/keelson-dev/keelson/runtime/internal/outbound"
)

// transport holds the connections to one target, which are reused by later calls.
type transport struct {
	key      key
	client   *http.Client
	base     *http.Transport
	identity Identity

	calls int       // in progress; guarded by the mu of the Caller, as is the next field
	used  time.Time // when the last call began
}

const (
	maxIdle       = 25 // connections to a target, as in kube-apiserver
	maxRedirects  = 10 // as in net/http
	idleTimeout   = 90 * time.Second
	dialTimeout   = 30 * time.Second
	tlsTimeout    = 10 * time.Second
	http2Silence  = 30 * time.Second // an idle connection is pinged after this time,
	http2PingTime = 15 * time.Second // and closed if there is no answer within this time
	http2Ahead    = 512 << 10        // flow-control window: bytes of an answer that may arrive before they are read
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
		Proxy: c.opts.Proxy, DialContext: c.conns.Dial, TLSClientConfig: secure, TLSHandshakeTimeout: tlsTimeout,
		MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: c.opts.MaxHeader,
		DisableCompression: true, // try and read request gzip and decompress it, with limits
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
		t.base.HTTP2 = &http.HTTP2Config{SendPingTimeout: http2Silence, PingTimeout: http2PingTime, MaxReceiveBufferPerStream: http2Ahead}
	} else {
		secure.NextProtos = []string{"http/1.1"}
	}
	t.client = &http.Client{Transport: rt, CheckRedirect: noRedirect}
	if c.opts.FollowRedirects {
		t.client.CheckRedirect = secureRedirect
	}
	return t, nil
}

// errRedirect is the reason of a call that was answered with a redirect. Its text is that of the aggregator of kube-apiserver.
var errRedirect = errors.New("the webhook attempted to redirect this request, which is not permitted")

// noRedirect makes the client return a redirect as the answer.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// secureRedirect follows redirects as net/http does by default, but none from https to http.
func secureRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case req.URL.Scheme == "http":
		return errors.New("the webhook redirects from https to http, which is not permitted")
	case len(via) >= maxRedirects:
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}

// isRedirect reports whether an answer is a redirect to another URL.
func isRedirect(resp *http.Response) bool {
	return resp.StatusCode >= 300 && resp.StatusCode <= 399 && resp.Header.Get("Location") != ""
}

// filteredDial returns a function that dials the addresses that a filter allows. Both arguments may be nil.
func filteredDial(dial outbound.Dial, filter func(network, address string) error) outbound.Dial {
	if dial == nil {
		d := &net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}
		if filter != nil {
			d.Control = func(network, address string, _ syscall.RawConn) error { return filter(network, address) }
		}
		return d.DialContext
	}
	if filter == nil {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		remote := conn.RemoteAddr()
		if err := filter(remote.Network(), remote.String()); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	}
}

// resolving sends each request to the address that a service has at that time.
type resolving struct {
	next    http.RoundTripper
	service *Service
	resolve func(ctx context.Context, namespace, name string, port int32) (string, error)
}

func (r *resolving) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != r.service.hostPort() { // a redirect to another host
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
