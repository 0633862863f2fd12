package server

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/credentials"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/zap"
)

// Options are the options of New: what a server serves, and how. A server with the zero Options keeps its objects in memory,
// listens on a free port of the loopback interface, and serves no groups.
type Options struct {
	// Storage opens the storage of the objects, such as bolt.At("hello.db"). nil keeps the objects in memory.
	Storage storage.Opener
	// Groups are the API groups that are served from the start. Server.Install adds others.
	Groups []Group
	// Scheme is the scheme in which the server registers the kinds of Groups. It may have kinds already, with their defaults and
	// conversions: Scheme.Import adds those of an existing AddToScheme function. [ImportedKind] serves one of these kinds, and
	// [Types] serves all of them. From New on the scheme belongs to the server. nil is an empty scheme.
	Scheme *runtime.Scheme
	// CBOR serves application/cbor beside JSON, YAML and protobuf, with watches in application/cbor-seq. The server then also
	// accepts bodies and applied configurations (application/apply-patch+cbor) in CBOR. kube-apiserver does the same under its
	// feature gate CBORServingAndStorage, which is off by default too. Objects are stored as JSON. Values that kube-apiserver has
	// stored in CBOR can be read without this option.
	CBOR bool
	// Now is the clock of creation timestamps. nil is time.Now.
	Now func() time.Time

	// Serving has the addresses, credentials and filters of the server.
	Serving Serving
	// Policy has the authenticator, the authorizer and the admission plug-ins.
	Policy Policy
	// Limits bound what clients cost.
	Limits Limits
	// Observe has the logger and further health checks.
	Observe Observe
}

// Serving says how clients reach a server: its address, credentials and filters. The zero Serving listens on a free port of the
// loopback interface, with a certificate and credentials that are lost when the server ends.
type Serving struct {
	// Listen is the TCP address that Run listens on, "host:port". "" is "127.0.0.1:0", and port 0 is any free port. The serving
	// certificate is valid for this host, and for localhost, 127.0.0.1 and ::1. The certificate is the same if Serve is called in
	// place of Run.
	Listen string
	// Credentials is a directory for the CA, the serving certificate, and the administrator's client certificate and token. A
	// missing directory is made with mode 0700. The files are made at first use, and used again while they are valid. "" keeps
	// the credentials in memory: then the certificates and the token are new at every start. While the server runs, a new serving
	// certificate is made before the old one expires.
	Credentials string
	// Certificate returns the certificate for TLS clients, as tls.Config.GetCertificate does. If Certificate is nil, or returns
	// nil, the server uses the serving certificate of Credentials. Certificate is called for each connection, by several
	// goroutines at a time. credentials.FromFiles reads certificates that another program renews. The file Kubeconfig works with
	// such a certificate only if Authorities is set, and also URL if the certificate is not for the address of Listen.
	Certificate func(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
	// Authorities are the certificates, in PEM, of the authorities that have signed the certificates of Certificate, or the
	// certificate of a proxy at URL. A certificate that is signed with its own key is its own authority. Clients that use the
	// file Kubeconfig trust these authorities and the CA of Credentials.
	Authorities []byte
	// URL is where clients reach the server, such as https://fair.example.com, or https://fair.example.com/keelson behind a proxy
	// that adds a path. The file Kubeconfig has it, and Ready is called with it. "" is https:// with the address of the listener.
	URL string
	// Kubeconfig is the name of a file with which kubectl reaches the server as the administrator. Run and Serve write it anew
	// when they begin to serve. "" writes no file. With Policy.NoAdministrator, Kubeconfig needs a directory in Credentials, and
	// a Policy.Authenticator that accepts the credentials in it.
	Kubeconfig string
	// Ready is called once, by Run or Serve, when /readyz answers 200. kubeconfig is the absolute path of the file that was
	// written, or "".
	Ready func(url, kubeconfig string)
	// CloseDelay is how long connections without a request stay open when the server ends, so that clients can read the end of
	// their last answers. 0 is 2 s. net/http closes such connections of HTTP/2 after 1 s. Before that, the server waits until
	// clients have read the ends of their watches, for at most CloseDelay or 0.1 s, whichever is longer.
	CloseDelay time.Duration
	// LivezGrace is how long after New /livez passes although hooks have not ended: see Host.Start. 0 is no time.
	LivezGrace time.Duration
	// ShutdownDelay is how long Run and Serve serve as before after their context has ended, while /readyz fails, so that load
	// balancers stop sending requests; 0 is no time.
	ShutdownDelay time.Duration
	// ShutdownRetryAfter keeps the listener open at the end until requests and watches have ended, and answers new requests with 429
	// and Retry-After; see filters.RetryAfter. (kube-apiserver waits for watches only if they have a grace.) Without it the listener
	// is closed first, and requests on open connections are answered with 503 and Retry-After.
	ShutdownRetryAfter bool
	// ShutdownWatchGrace is the time over which watches end at the end of the server, one after the other, so that their clients do not
	// all connect to another server at once; 0 ends all at the same time. The server ends them evenly over the time; kube-apiserver
	// ends 200 watches a second, and may need less than the time. With a time, each watch takes some 500 bytes more. Other long-running requests, such as those that
	// have taken over their connection, go on until all other requests have ended, and then for CloseDelay.
	ShutdownWatchGrace time.Duration
	// Proxies are the addresses of proxies in front of the server. A request from one of them counts for the last address in its
	// header X-Forwarded-For that is not in Proxies. The connections of these proxies are not bounded by address. An address of a
	// proxy that is not named here counts as one client, and one client may have half of all connections. Name only proxies that
	// append the address of their client to the header, or replace the header. With any other proxy a client can choose the
	// address that its requests count for. An address in the header may have a port. The header Forwarded (RFC 7239) is ignored.
	// A request without a usable address in the header counts for no address. A load balancer that forwards TCP connections hides
	// the addresses of its clients, since the PROXY protocol is not supported.
	Proxies []netip.Prefix
	// AllowOrigin returns true for an origin ("https://console.example.com") whose web pages may read answers of this server, open
	// WebSockets to it and send it requests other than reads. Such requests are made as the user whose certificate the browser has. The server's
	// own origin is always allowed. nil allows no other origin. Clients that are not browsers send no origin, and requests with a
	// bearer token are not refused, because a browser does not add one by itself. AllowOrigin is called by several goroutines at a
	// time. See filters.Origin and filters.CORS.
	AllowOrigin func(origin string) bool
	// HSTS are the directives of the header Strict-Transport-Security, such as "max-age=31536000" and "includeSubDomains". Without
	// directives the answers have no such header. See filters.HSTS.
	HSTS []string
	// GoAwayChance is the part of the requests of HTTP/2 after which the connection ends, so that clients spread over the servers
	// behind a load balancer, from 0 to 0.02; 0 ends none. See filters.GoAway.
	GoAwayChance float64
	// Filters rearranges the filter chain, outermost filter first. nil changes nothing. The function may change the slice, and
	// may use [InsertBefore] and [InsertAfter]. [Server.Chain] lists the filters of a server. Filters may be added after
	// "authorize". The members of the slice up to "authorize" have a nil Filter: they may be left out or moved, but no filter may
	// be added among them. The filters that Guards lists may not be left out or moved. See TrustFilters.
	Filters func([]NamedFilter) []NamedFilter
	// TrustFilters lets Filters remove, replace and move the filters that guard the server, and put filters before them. Then
	// Filters decides whether requests are authenticated and authorized at all.
	TrustFilters bool
}

// Policy decides which users there are, what they may do, and which changes are accepted. The zero Policy has one user, the
// administrator, with the credentials of Serving.Credentials (a client certificate and a bearer token) and the group
// system:masters. The comments of Authenticator and Authorizer describe the defaults. The authorizers also decide who may
// impersonate whom: see package authz/impersonation.
//
// /readyz calls the method Ready(context.Context) error of Authenticator, of Authorizer and of each plug-in, if they have this
// method. [Host] documents how requests are treated until then. The policy can be changed while the server serves, by the methods
// of a Host.
type Policy struct {
	// Authenticator authenticates the requests that no other authenticator has authenticated. The others are called first: that
	// of Users, that of the administrator, and those of extensions (Host.Authenticate). If Authenticator is nil, requests
	// without a credential are those of system:anonymous. If it is set, it decides about requests without a credential:
	// authn.Anonymous("/livez", "/readyz") accepts them at these paths only, as the conditions of kube-apiserver do, and authn.Union()
	// nowhere. It has to return its users with all their groups, such as system:authenticated: with
	// authn.WithAnonymous(authn.AuthenticatedGroup(a), paths...) the users of a may read discovery, which kubectl needs, and requests
	// without a credential, such as those of probes, are accepted. The paths do not bind a proxy that forwards a request of
	// system:anonymous. The example of Policy.Authenticator has a proxy, a token webhook, and a file that is followed.
	Authenticator authn.Authenticator
	// NoAdministrator makes the server refuse the administrator of Serving.Credentials. Authenticator may still accept the client
	// certificate and the token in that directory.
	NoAdministrator bool
	// Users are further users, by their bearer tokens. They are members of system:authenticated. The authorizers decide what they
	// may do: see Host.Authorize and package builtin/rbac. authn.ReadTokens reads them from a token file; for a file that changes see Host.Follow and
	// Host.Authenticate. A user without a name, or
	// with an empty token, is an error. The map is copied.
	Users map[string]authn.User
	// WrapAuthenticator is called with the whole authenticator of the server, and returns the authenticator to use instead, which
	// must not be nil. A nil WrapAuthenticator changes nothing. If whole is the argument,
	// authn.Union(authn.AuthenticatedGroup(a), whole) adds the users of a, and keeps the administrator. The order matters: whole
	// takes a request in which it finds no credential as one of system:anonymous.
	WrapAuthenticator func(authn.Authenticator) authn.Authenticator
	// Audiences are the audiences that the server identifies as. A token that is valid only for other audiences is refused. If
	// Audiences is empty, the audiences of tokens are not checked.
	Audiences []string
	// TokenCache are the options of the cache in front of the authenticators of tokens that extensions add (Host.Authenticate). It
	// begins anew when one of them is added, replaced or removed. The other tokens need no cache.
	TokenCache authn.CacheOptions
	// Authorizer authorizes requests. Extensions add authorizers after it (Host.Authorize). If it is nil, members of
	// system:masters may do everything, everybody may read /healthz, /livez, /readyz and /version, and authenticated users may
	// read discovery and OpenAPI (/api, /apis and /openapi). An authorizer that is set replaces all these rules; authz.Union(a,
	// DefaultRules()) keeps them. Host.Authorize adds rules without replacing any; package builtin/rbac replaces all but that of
	// system:masters by stored roles.
	Authorizer authz.Authorizer
	// Admission are the plug-ins that judge and complete changes of every kind, together with those of extensions (Host.Admit),
	// in the order of admission.Order. Plug-ins without a name get one. nil accepts all changes.
	Admission admission.Chain
	// Audit are the backends that record requests, together with those of extensions (Host.Audit). nil records nothing. The
	// program closes the sinks when Run, Serve or Close has returned.
	Audit []audit.Backend
}

// Observe has the options for logs and health checks. The zero Observe logs nothing.
type Observe struct {
	// Logger receives starts and stops, panics and answers with a 5xx code. It also receives, each at most 10 times a second, slow
	// requests, the reasons for answers with 401, events that an audit backend has not recorded, and the reasons for changes that
	// leave metadata.managedFields as they were. nil logs nothing.
	Logger *zap.Logger
	// SlowRequest is the time from which the Logger receives a line about a request, with the parts in which the time went. 0 is 500 ms,
	// negative is no line. Watches and other requests that last have no line. See filters.Slow. Audit events name the parts of requests
	// that take 500 ms or more, whatever SlowRequest is.
	SlowRequest time.Duration
	// Checks are further health checks.
	Checks []Check
}

// defaultSlow is the default of Observe.SlowRequest, as in kube-apiserver.
const defaultSlow = 500 * time.Millisecond

// complete checks o and sets the defaults of the fields that are zero.
func (o Options) complete() (Options, error) {
	if o.Scheme == nil {
		o.Scheme = runtime.NewScheme()
	}
	if o.Storage == nil {
		o.Storage = memory.Open()
	}
	o.Serving.Listen = cmp.Or(o.Serving.Listen, "127.0.0.1:0")
	if _, _, err := net.SplitHostPort(o.Serving.Listen); err != nil {
		return o, fmt.Errorf("server: Serving.Listen %q: want host:port, such as 127.0.0.1:6443: %w", o.Serving.Listen, err)
	}
	if o.Serving.Kubeconfig != "" && o.Policy.NoAdministrator && (o.Serving.Credentials == "" || o.Policy.Authenticator == nil) {
		return o, errors.New("server: Serving.Kubeconfig has the credentials of the administrator, whom Policy.NoAdministrator refuses: leave out one of both, " +
			"or set Serving.Credentials and a Policy.Authenticator that accepts the credentials of that folder")
	}
	if len(o.Serving.Authorities) > 0 {
		if err := credentials.CheckAuthorities(o.Serving.Authorities); err != nil {
			return o, fmt.Errorf("server: Serving.Authorities: %w", err)
		}
	}
	if at := o.Serving.URL; at != "" {
		if u, err := url.Parse(at); err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return o, fmt.Errorf("server: Serving.URL %q: want https://host, https://host:port or https://host:port/path", at)
		}
	}
	for token, user := range o.Policy.Users {
		if token == "" || user.Name == "" {
			return o, fmt.Errorf("server: Policy.Users has a user without a token or without a name, in the groups %q; give it both", user.Groups)
		}
	}
	if c := o.Policy.TokenCache; c.Entries < 0 || c.Bytes < 0 || c.Lookup < 0 {
		return o, errors.New("server: Policy.TokenCache: Entries, Bytes and Lookup must not be negative")
	}
	for _, p := range o.Serving.Proxies {
		if !p.IsValid() {
			return o, errors.New("server: Serving.Proxies has a zero or invalid prefix: use netip.ParsePrefix or netip.PrefixFrom")
		}
	}
	if o.Serving.ShutdownDelay < 0 || o.Serving.LivezGrace < 0 || o.Serving.ShutdownWatchGrace < 0 {
		return o, errors.New("server: Serving.ShutdownDelay, Serving.LivezGrace and Serving.ShutdownWatchGrace must not be negative")
	}
	if c := o.Serving.GoAwayChance; !(c >= 0 && c <= 0.02) {
		return o, fmt.Errorf("server: Serving.GoAwayChance %v: want a number from 0 to 0.02", c)
	}
	o.Serving.CloseDelay = cmp.Or(o.Serving.CloseDelay, 2*time.Second)
	if o.Serving.CloseDelay < 0 {
		return o, errors.New("server: Serving.CloseDelay must not be negative")
	}
	var err error
	if o.Limits, err = o.Limits.complete(); err != nil {
		return o, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Observe.SlowRequest = cmp.Or(o.Observe.SlowRequest, defaultSlow)
	if o.Observe.Logger == nil {
		o.Observe.Logger = zap.NewNop()
	}
	// The stack of a log call is always that of the filter chain, which does not help. A panic has its own stack in a field.
	o.Observe.Logger = o.Observe.Logger.WithOptions(zap.AddStacktrace(zap.DPanicLevel))
	for _, c := range o.Observe.Checks {
		if c.Name == "" || strings.ContainsAny(c.Name, "?#% ") || c.Check == nil {
			return o, fmt.Errorf("server: health check %q: want a name that fits in a path, and a function", c.Name)
		}
	}
	return o, nil
}
