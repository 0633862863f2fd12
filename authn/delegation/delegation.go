// Package delegation authenticates the users of a cluster for an extension server, which a cluster serves as a part of its API:
// https://kubernetes.io/docs/tasks/extend-kubernetes/setup-extension-api-server/. The server of the cluster is called the host.
//
//	cfg, err := client.InCluster()
//	host, err := delegation.New(cfg, delegation.Options{})
//	defer host.Close()
//	err = errors.Join(
//		srv.Authenticate(authn.RequestHeader, host.Proxy()),
//		srv.Authenticate(authn.ClientCertificate, host.Certificates()),
//		srv.Authenticate(authn.TokenWebhook, authn.BearerToken(host.Tokens())),
//	)
//
// The host knows the users. It sends most requests itself, as an authenticating proxy; others come from clients with a client
// certificate or a token of the host. Which certificates are those of proxies and clients, and which headers name the user, is
// in the ConfigMap extension-apiserver-authentication of the namespace kube-system. A Host watches this ConfigMap, so that an
// authority that is added there is trusted, and one that is removed is not trusted any more, as soon as the change arrives. During a
// rotation the ConfigMap has the old and the new authority, and both are trusted. Tokens are sent to the host in TokenReviews.
//
// # Permissions
//
// The credentials of the Config need the role extension-apiserver-authentication-reader in the namespace kube-system, and the cluster
// role system:auth-delegator. The errors of [Host.Ready] and of [Hooks.Failed] say what the host has refused.
//
// # Failures
//
// Until the ConfigMap has been read, and was not damaged, a request with a client certificate is not authenticated: the error is 401, and never a request
// of an anonymous user. If the ConfigMap does not exist, the host authenticates no proxies and no client certificates, and nobody is
// trusted. While the host cannot be reached, after the deletion of the ConfigMap, and for a value that is damaged, what was read before
// stays in use: kube-apiserver deletes authorities by writing the ConfigMap. A key that the ConfigMap does not have any more ends its
// authorities. Users of tokens are remembered for 10 seconds.
package delegation

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/webhook"
	"github.com/keelson-dev/keelson/runtime/client"
)

// Options are the options of New. The zero Options is valid.
type Options struct {
	// Reviews are the options of the TokenReviews. Its Path and Version are not used. Success and Failure are 10 seconds by default.
	Reviews webhook.Options
	// Client are the options of the connections. MaxAnswer is 4 MiB by default, more than twice the size of the largest ConfigMap.
	Client client.Options
	// Backoff is the time before the ConfigMap is read again after a failure; 0 means a second. It doubles with each failure, up to
	// 30 times the time.
	Backoff time.Duration
	// Hooks tell what happens.
	Hooks Hooks
}

// Hooks are called by the goroutine of a Host. Each may be nil.
type Hooks struct {
	// Changed is called when other proxies or clients than before are trusted.
	Changed func(Trust)
	// Failed is called when the ConfigMap cannot be read, or a value in it cannot be used. What was read before stays in use.
	Failed func(error)
}

// Host is what a server knows about its host. Make one with New, and Close it. All methods may be called concurrently.
type Host struct {
	opts   Options
	client *client.Client
	tokens *webhook.Authenticator
	state  atomic.Pointer[state] // never nil

	stop context.CancelFunc
	done sync.WaitGroup
}

// state is what a Host has read. It is not changed.
type state struct {
	read    bool  // the ConfigMap was read, or does not exist
	err     error // why it was not read
	trust   Trust
	clients *x509.CertPool // nil if no client certificates are trusted
	proxy   *authn.Proxy   // nil if no proxies are trusted
}

// New returns the Host of a Config, and starts a goroutine that reads the ConfigMap. The error names the wrong field of cfg or of the
// options. New waits for nothing: see Ready.
func New(cfg client.Config, o Options) (*Host, error) {
	o.Reviews.Path, o.Reviews.Version = webhook.TokenReviews, webhook.V1
	o.Reviews.Success, o.Reviews.Failure = cmp.Or(o.Reviews.Success, authn.DefaultCacheTime), cmp.Or(o.Reviews.Failure, authn.DefaultCacheTime)
	if o.Backoff < 0 {
		return nil, errors.New("delegation: Options.Backoff must not be negative")
	}
	o.Backoff, o.Client.MaxAnswer = cmp.Or(o.Backoff, time.Second), cmp.Or(o.Client.MaxAnswer, 4<<20)
	tokens, err := webhook.New(cfg, o.Reviews)
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, o.Client)
	if err != nil {
		tokens.Close()
		return nil, fmt.Errorf("delegation: %w", err)
	}
	h := &Host{opts: o, client: c, tokens: tokens}
	h.state.Store(&state{err: errors.New("there was no answer yet")})
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	h.done.Go(func() { h.follow(ctx) })
	return h, nil
}

// Close ends the goroutine and all requests to the host, and waits for them. A second call has no effect.
func (h *Host) Close() {
	h.stop()
	h.client.Close()
	h.tokens.Close()
	h.done.Wait()
}

// Ready returns an error until the host has answered whom to trust. Servers call it for their readiness.
func (h *Host) Ready(context.Context) error { return h.state.Load().ready() }

func (s *state) ready() error {
	if s.read {
		return nil
	}
	return fmt.Errorf("the ConfigMap %s/%s of the host was not read: %w", Namespace, Name, s.err)
}

// Trust returns whom the host trusts now.
func (h *Host) Trust() Trust { return h.state.Load().trust }

// Tokens authenticates tokens by the host. Users have the audiences of authn.AudiencesFrom.
func (h *Host) Tokens() authn.TokenAuthenticator { return h.tokens }

// Proxy authenticates the requests that the host, or another proxy with its trust, forwards: see authn.AuthenticatingProxy.
func (h *Host) Proxy() authn.Authenticator { return proxied{h} }

// Certificates authenticates the requests of clients with a client certificate that the host accepts: see authn.X509.
func (h *Host) Certificates() authn.Authenticator {
	known := authn.X509(func() *x509.CertPool { return h.state.Load().clients })
	return certified{h, known}
}

// proxied is the authenticator of Host.Proxy.
type proxied struct{ *Host }

// Authenticate implements authn.Authenticator.
func (p proxied) Authenticate(r *http.Request) (*authn.Response, error) {
	s := p.state.Load()
	if err := s.refuses(r); err != nil || s.proxy == nil {
		return nil, err
	}
	return s.proxy.Authenticate(r)
}

// Strip is for authn.Strip. It removes the headers of the host's proxies; others remove those that all proxies have.
func (p proxied) Strip(h http.Header) http.Header {
	if proxy := p.state.Load().proxy; proxy != nil {
		return proxy.Strip(h)
	}
	return h
}

// certified is the authenticator of Host.Certificates.
type certified struct {
	*Host
	known authn.Authenticator
}

// Authenticate implements authn.Authenticator.
func (c certified) Authenticate(r *http.Request) (*authn.Response, error) {
	if err := c.state.Load().refuses(r); err != nil {
		return nil, err
	}
	return c.known.Authenticate(r)
}

// refuses returns an error for a request with a client certificate of which nobody knows yet whether the host trusts it.
func (s *state) refuses(r *http.Request) error {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil
	}
	return s.ready()
}
