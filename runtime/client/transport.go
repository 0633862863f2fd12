package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	maxIdle       = 25
	idleTimeout   = 90 * time.Second
	tlsTimeout    = 10 * time.Second
	maxHeader     = 1 << 20
	http2Silence  = 30 * time.Second // an idle connection is pinged after this time,
	http2PingTime = 15 * time.Second // and closed if there is no answer within this time
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

// sameServer follows redirects only within a server, because the credentials are for the configured server.
func sameServer(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= maxRedirects:
		return errors.New("the server redirects too often")
	case req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme:
		return errors.New("the server redirects to another server, which is not followed: credentials are for the one that is configured")
	}
	return nil
}
