// Package delegation authenticates the users of a cluster for an extension server, which serves a part of the cluster's API:
// https://kubernetes.io/docs/tasks/extend-kubernetes/setup-extension-api-server/.
//
//	func install(h *server.Host) error { // a server.ExtensionFunc
//		cfg, err := client.InCluster()
//		if err != nil {
//			return err
//		}
//		cluster, err := delegation.New(cfg, delegation.Options{})
//		if err != nil {
//			return err
//		}
//		h.OnClose(cluster.Close)
//		return errors.Join(
//			h.Authenticate(authn.RequestHeader, cluster.Proxy()),
//			h.Authenticate(authn.ClientCertificate, cluster.Certificates()),
//			h.Authenticate(authn.TokenWebhook, authn.BearerToken(cluster.Tokens())),
//		)
//	}
//
// Package authz/delegation has the cluster decide what the users may do. Both together:
//
//	decides, err := authzdelegation.New(cfg, authzdelegation.Options{}) // package authz/delegation
//	defer decides.Close()
//	srv, err := server.New(server.Options{Policy: server.Policy{Authorizer: decides}})
//	err = srv.Install(server.ExtensionFunc(install))
//
// The server of the cluster knows the users. It sends most requests itself, as an authenticating proxy; others come from clients with
// a client certificate or a token of the cluster. Which certificates are those of proxies and clients, and which headers name the user,
// is in the ConfigMap extension-apiserver-authentication of the namespace kube-system. A Cluster watches this ConfigMap, so that an
// authority that is added there is trusted, and one that is removed is not trusted any more, as soon as the change arrives. During a
// rotation the ConfigMap has the old and the new authority, and both are trusted. Tokens are sent to the cluster in TokenReviews.
//
// # What the cluster needs
//
// The credentials of the Config need the Role extension-apiserver-authentication-reader in the namespace kube-system (get, list and
// watch of the ConfigMap) and the ClusterRole system:auth-delegator (create of tokenreviews in the group authentication.k8s.io). Both
// exist in Kubernetes, where kube-apiserver also writes the ConfigMap. Bindings give the roles to the account of the extension server,
// here NAME in the namespace NS:
//
//	kubectl create clusterrolebinding NAME-reviews --clusterrole=system:auth-delegator --serviceaccount=NS:NAME
//	kubectl -n kube-system create rolebinding NAME-proxies --role=extension-apiserver-authentication-reader --serviceaccount=NS:NAME
//
// The errors of [Cluster.Ready] and of [Hooks.Failed] say what the cluster refuses.
//
// If the cluster is a server of this library, install packages server/builtin and server/builtin/reviews in it, and server/builtin/rbac,
// which makes both roles with the default of its Options.Bootstrap. Only the two bindings are to be made, and, for certificates and proxies,
// the ConfigMap, which nothing else makes there. It has the keys
//
//	client-ca-file                     the authorities of client certificates, in PEM
//	requestheader-client-ca-file       the authorities of the certificates of proxies, in PEM
//	requestheader-allowed-names        the common names of proxies, as a list in JSON; [] allows all names
//	requestheader-username-headers     the headers of proxies, as lists in JSON, such as ["X-Remote-User"]
//	requestheader-uid-headers
//	requestheader-group-headers
//	requestheader-extra-headers-prefix
//
// # Failures
//
// Until the ConfigMap has been read, and was not damaged, a request with a client certificate is not authenticated: the answer is 401,
// and the request is never one of an anonymous user. If the ConfigMap does not exist, or the cluster does not serve ConfigMaps, no
// certificate is trusted, and tokens are authenticated.
//
// While the cluster cannot be reached, after the deletion of the ConfigMap, and for a value that is damaged, what was read before stays
// in use: a cluster ends an authority by a change of the ConfigMap. In contrast to k8s.io/apiserver, a key that the ConfigMap does not
// have any more ends its authorities.
//
// Users of tokens are remembered for 10 seconds here and, as all users of tokens, for 10 seconds in the server: see authn.CacheTokens.
// Watches that have begun are not ended when their user is refused.
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
	// Backoff is the time before the ConfigMap is read again; 0 means a second. It doubles each time, up to ten times, and begins anew
	// after a watch that lasted for 10 seconds.
	Backoff time.Duration
	// Hooks tell what happens.
	Hooks Hooks
}

// Hooks are called by the goroutine of a Cluster. Each may be nil.
type Hooks struct {
	// Changed is called when other proxies or clients than before are trusted.
	Changed func(Trust)
	// Failed is called when the ConfigMap cannot be read, or a value in it cannot be used. What was read before stays in use.
	Failed func(error)
}

// Cluster is what an extension server knows about its cluster. Make one with New, and Close it. All methods may be called concurrently.
type Cluster struct {
	opts   Options
	client *client.Client
	tokens *webhook.Authenticator
	state  atomic.Pointer[state] // never nil

	stop context.CancelFunc
	done sync.WaitGroup
}

// state is what a Cluster has read. It is not changed.
type state struct {
	read    bool  // the ConfigMap was read, or does not exist
	err     error // why it was not read
	trust   Trust
	clients *x509.CertPool // nil if no client certificates are trusted
	proxy   *authn.Proxy   // nil if no proxies are trusted
}

// New returns the Cluster of a Config, and starts a goroutine that reads the ConfigMap. The error names the wrong field of cfg or of the
// options. New waits for nothing: see Ready.
func New(cfg client.Config, o Options) (*Cluster, error) {
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
	requests, err := client.New(cfg, o.Client)
	if err != nil {
		tokens.Close()
		return nil, fmt.Errorf("delegation: %w", err)
	}
	c := &Cluster{opts: o, client: requests, tokens: tokens}
	c.state.Store(&state{err: errors.New("there was no answer yet")})
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.done.Go(func() { c.follow(ctx) })
	return c, nil
}

// Close ends the goroutine and all requests to the cluster, and waits for them. A second call has no effect.
func (c *Cluster) Close() {
	c.stop()
	c.client.Close()
	c.tokens.Close()
	c.done.Wait()
}

// Ready returns an error until the cluster has answered whom to trust. Servers call it for their readiness.
func (c *Cluster) Ready(context.Context) error { return c.state.Load().ready() }

func (s *state) ready() error {
	if s.read {
		return nil
	}
	return fmt.Errorf("the ConfigMap %s/%s of the cluster was not read: %w", Namespace, Name, s.err)
}

// Trust returns whom the cluster trusts now.
func (c *Cluster) Trust() Trust { return c.state.Load().trust }

// Tokens authenticates tokens by the cluster. Users have the audiences of authn.AudiencesFrom.
func (c *Cluster) Tokens() authn.TokenAuthenticator { return c.tokens }

// Proxy authenticates the requests that the cluster, or another proxy with its trust, forwards: see authn.AuthenticatingProxy.
func (c *Cluster) Proxy() authn.Authenticator { return proxied{c} }

// Certificates authenticates the requests of clients with a client certificate that the cluster accepts: see authn.X509.
func (c *Cluster) Certificates() authn.Authenticator {
	known := authn.X509(func() *x509.CertPool { return c.state.Load().clients })
	return certified{c, known}
}

// proxied is the authenticator of Cluster.Proxy.
type proxied struct{ *Cluster }

// Authenticate implements authn.Authenticator.
func (p proxied) Authenticate(r *http.Request) (*authn.Response, error) {
	s := p.state.Load()
	if err := s.refuses(r); err != nil || s.proxy == nil {
		return nil, err
	}
	return s.proxy.Authenticate(r)
}

// Strip is for authn.Strip. It removes the headers of the cluster's proxies; others remove those that all proxies have.
func (p proxied) Strip(h http.Header) http.Header {
	if proxy := p.state.Load().proxy; proxy != nil {
		return proxy.Strip(h)
	}
	return h
}

// certified is the authenticator of Cluster.Certificates.
type certified struct {
	*Cluster
	known authn.Authenticator
}

// Authenticate implements authn.Authenticator.
func (c certified) Authenticate(r *http.Request) (*authn.Response, error) {
	if err := c.state.Load().refuses(r); err != nil {
		return nil, err
	}
	return c.known.Authenticate(r)
}

// refuses returns an error for a request with a client certificate of which nobody knows yet whether the cluster trusts it.
func (s *state) refuses(r *http.Request) error {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil
	}
	return s.ready()
}
