package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
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
		Proxy: c.opts.Proxy, DialContext: c.conns.Dial, TLSClientConfig: secure, TLSHandshakeTimeout: tlsTimeout,
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
