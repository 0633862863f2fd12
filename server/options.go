package server

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/zap"
)

// Options says what a server serves and how. The zero Options is a server in memory, on a free port of the
// loopback interface, that serves no groups.
type Options struct {
	// Storage opens where objects live, such as bolt.At("hello.db"). nil keeps them in memory.
	Storage storage.Opener
	// Groups are the API groups served from the start; see also Install.
	Groups []Group
	// Scheme knows kinds beforehand, such as those that its Import took from an existing AddToScheme with their
	// defaults and conversions: Kind then serves them. It is the server's from New on. nil is an empty one.
	Scheme *runtime.Scheme
	// CBOR serves application/cbor beside JSON, YAML and protobuf, with watches in application/cbor-seq, and accepts bodies
	// and applied configurations (application/apply-patch+cbor) in it, as kube-apiserver does under its feature gate
	// CBORServingAndStorage, which is off by default, as this is. Objects are stored as JSON; values that kube-apiserver has
	// stored in CBOR are read without it.
	CBOR bool
	// Now is the clock of creation timestamps; nil is time.Now.
	Now func() time.Time

	Serving Serving
	Policy  Policy
	Limits  Limits
	Observe Observe
}

// Serving says where clients reach a server. The zero Serving is a free port of the loopback interface, with a certificate
// and credentials that end with the server.
type Serving struct {
	// Listen is the TCP address of Run, "host:port"; "" is "127.0.0.1:0", and port 0 any free one. The serving
	// certificate is valid for its host, and for localhost, 127.0.0.1 and ::1; that is so with Serve too.
	Listen string
	// Credentials is a directory (made with mode 0700 when missing) for the CA, the serving certificate and the
	// administrator's client certificate and token, all made at first use and used again while they are valid.
	// "" keeps them in memory: they end with the server. The serving certificate is made anew before its end while the server
	// runs.
	Credentials string
	// Certificate is what TLS clients are shown, as in tls.Config.GetCertificate, instead of the serving certificate
	// of Credentials, which they are shown when it is nil or returns nil. Clients of the kubeconfig trust the CA of
	// Credentials only. It is called for each connection, by several goroutines at a time. credentials.FromFiles reads
	// certificates that others renew.
	Certificate func(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
	// Kubeconfig is a file, rewritten when Run or Serve begins to serve, with which kubectl reaches the server as
	// administrator; "" writes none. With Policy.Authenticator it needs Credentials, which that has to know.
	Kubeconfig string
	// Ready is called once, from Run or Serve, when /readyz answers 200. kubeconfig is the absolute path of the
	// file written, or "".
	Ready func(url, kubeconfig string)
	// CloseDelay is how long, at the end, connections without a request stay open, so that clients can read how
	// their last ones ended; 0 is 2 s (net/http closes those of HTTP/2 after 1 s).
	CloseDelay time.Duration
	// Proxies are the addresses of proxies in front of the server. A request that comes through them counts for the last address in
	// its header X-Forwarded-For that is none of theirs, and their connections are not bounded by address. Proxies that are not
	// named here count as one client for each of their addresses. Name only proxies that append the address of their client to
	// the header, or replace it: a client behind others chooses for whom its requests count.
	Proxies []netip.Prefix
	// AllowOrigin returns true for the origins ("https://console.example.com") whose web pages may open WebSockets to this
	// server and send it requests other than reads, besides its own: they then do so as the user whose certificate the browser
	// has. nil allows none; clients that are no browsers send no origin. It is called by several goroutines at a time. See
	// filters.Origin.
	AllowOrigin func(origin string) bool
	// Filters rearranges the filter chain, outermost first; nil leaves it as Chain lists it. The slice is the function's
	// own. Filters may be added behind "authorize". Up to there the members of the slice have no Filter: they may be left
	// out or moved, but for those that guard the server (see Guards), and nothing is added. See TrustFilters.
	Filters func([]NamedFilter) []NamedFilter
	// TrustFilters lets Filters remove, replace and move the filters that guard the server, and put filters before them.
	// Then Filters decides whether a request is authenticated and authorized at all.
	TrustFilters bool
}

// Policy says who may do what. Its members that have a method Ready(context.Context) error are asked by /readyz, and waited for,
// as those of extensions are: see Host. The zero Policy knows one administrator, by the credentials of Serving.Credentials, whose
// group system:masters may do everything.
type Policy struct {
	// Authenticator says who makes a request that no authenticator of an extension (Host.Authenticate) knows; nil: the
	// administrator of Serving.Credentials, and a request without a credential is that of system:anonymous. Any other takes the
	// place of both, and names the groups of its users itself: with authn.WithAnonymous(authn.AuthenticatedGroup(a)) requests
	// without a credential, such as those of probes, are known, and users may read discovery, which kubectl needs. To
	// add users to the administrator use Host.Authenticate.
	Authenticator authn.Authenticator
	// WrapAuthenticator is given the whole authenticator, and returns what the server asks instead, which must not be nil; nil
	// is no change. authn.Union(authn.AuthenticatedGroup(a), whole) adds the users that a knows, and leaves the administrator:
	// in that order, as the whole authenticator takes a request without a credential that it looks for as one of
	// system:anonymous.
	WrapAuthenticator func(authn.Authenticator) authn.Authenticator
	// Audiences are those the server identifies as, for tokens that name theirs; nil is none.
	Audiences []string
	// Authorizer says who may do what, before what extensions add (Host.Authorize); nil: system:masters may do
	// everything, everybody may read /healthz, /livez, /readyz and /version, and who is authenticated discovery and OpenAPI.
	// Any other takes the place of all that: authz.Union(a, authz.Masters(), authz.AllowPaths("/healthz", "/livez", "/readyz"))
	// still has an administrator, and answers probes. To add rules to the server's own use Host.Authorize.
	Authorizer authz.Authorizer
	// Admission judges and completes changes to every kind, with what extensions add (Host.Admit), in the order of
	// admission.Order. Plug-ins without a name get one. nil accepts all.
	Admission admission.Chain
}

// Observe says what a server tells of itself. The zero Observe is silent.
type Observe struct {
	// Logger gets starts, stops, panics, 5xx answers, and why requests are answered with 401, of which
	// at most 10 lines a second; nil is silent.
	Logger *zap.Logger
	// Checks are further health checks.
	Checks []Check
}

// complete checks o and fills in what is left to its default.
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
	if o.Serving.Kubeconfig != "" && o.Serving.Credentials == "" && o.Policy.Authenticator != nil {
		return o, errors.New("server: Serving.Kubeconfig is for the administrator, whom Policy.Authenticator does not know: leave out Kubeconfig, " +
			"add the authenticator by Host.Authenticate instead, or have it know the credentials of the folder Serving.Credentials")
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
	if o.Observe.Logger == nil {
		o.Observe.Logger = zap.NewNop()
	}
	// The stack of the filter chain is never where a fault is; a panic has its own in a field.
	o.Observe.Logger = o.Observe.Logger.WithOptions(zap.AddStacktrace(zap.DPanicLevel))
	for _, c := range o.Observe.Checks {
		if c.Name == "" || strings.ContainsAny(c.Name, "?#% ") || c.Check == nil {
			return o, fmt.Errorf("server: health check %q: want a name that fits in a path, and a function", c.Name)
		}
	}
	return o, nil
}
