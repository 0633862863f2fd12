package jwt

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/internal/jose"
	"github.com/keelson-dev/keelson/authn/jwt/internal/provider"
)

// Options are the options of New. The zero Options is usable.
type Options struct {
	// ReservedIssuers are issuers that no entry may have: those of the service accounts of the server, whose tokens it verifies with
	// keys of its own.
	ReservedIssuers []string
	// Dial opens the connections to issuers; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Limits bound what tokens and issuers cost.
	Limits Limits
	// Hooks tell what happens.
	Hooks Hooks
}

// Limits bound what tokens and issuers cost. Zero fields stand for the defaults in the comments.
type Limits struct {
	Token     int           // bytes of a token; 64 KiB. There is no opinion of a larger one
	Document  int64         // bytes of a discovery document, and of the keys of an issuer; 1 MiB
	Claims    int64         // bytes of an answer with distributed claims; 64 KiB
	Keys      int           // keys of an issuer; 100
	Waiting   int           // tokens of an issuer that wait for keys, or for distributed claims; 1000 each
	Sources   int           // issuers, besides that of the token, whose distributed claims an entry accepts; 8
	Timeout   time.Duration // of a request to an issuer, with the answer; 30 s
	Retry     time.Duration // between two attempts to get the keys of an issuer of which none are known; 10 s
	Pause     time.Duration // between two fetches of keys because of tokens with unknown ones; 1 s
	Every     time.Duration // after which keys are fetched without cause; 1 h
	Redirects int           // in one request to an issuer; 10, less than 0 none
}

func (l Limits) withDefaults() Limits {
	l.Claims, l.Waiting, l.Sources = cmp.Or(l.Claims, 64<<10), cmp.Or(l.Waiting, 1000), cmp.Or(l.Sources, 8)
	return l
}

func (l Limits) provider() provider.Limits {
	return provider.Limits{
		Timeout: l.Timeout, Retry: l.Retry, Pause: l.Pause, Every: l.Every, Document: l.Document, Keys: l.Keys, Waiting: l.Waiting, Redirects: l.Redirects,
	}
}

// Hooks are functions that an Authenticator calls; any of them may be nil. They must return quickly, and may be called concurrently. No
// argument has a secret.
type Hooks struct {
	// Authenticated is called for each token of an issuer with what became of it, and how long that took.
	Authenticated func(issuer string, err error, took time.Duration)
	// Fetched is called after each attempt to get the keys of an issuer, with a hash of the keys, or with the error.
	Fetched func(issuer, keys string, err error)
}

func (h Hooks) withDefaults() Hooks {
	if h.Authenticated == nil {
		h.Authenticated = func(string, error, time.Duration) {}
	}
	if h.Fetched == nil {
		h.Fetched = func(string, string, error) {}
	}
	return h
}

// Authenticator authenticates the tokens of the issuers of a Configuration. Make one with New, and Close it. All methods may be called
// concurrently.
type Authenticator struct {
	issuers map[string]*issuer // by URL
	o       Options
}

var _ authn.TokenAuthenticator = (*Authenticator)(nil)

// New returns an authenticator, and begins to get the keys of each issuer in a goroutine. The error has all faults of the configuration,
// as that of Validate, or names an issuer that is reserved, a signing algorithm that is not supported, or an egressSelectorType: no
// selector is available.
func New(c *Configuration, o Options) (*Authenticator, error) {
	o.Limits, o.Hooks = o.Limits.withDefaults(), o.Hooks.withDefaults()
	entries, err := compile(c)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if slices.Contains(o.ReservedIssuers, e.Issuer.URL) {
			return nil, reservedIssuer(e.Issuer.URL, o.ReservedIssuers)
		}
		for _, alg := range e.SigningAlgorithms {
			if !slices.Contains(jose.Algorithms(), alg) {
				return nil, fmt.Errorf("oidc: unsupported signing alg: %q", alg)
			}
		}
		if selector := e.Issuer.EgressSelectorType; selector != "" {
			return nil, fmt.Errorf("oidc: egress lookup required with egress selector type %q", selector)
		}
	}
	a := &Authenticator{issuers: make(map[string]*issuer, len(entries)), o: o}
	for _, e := range entries {
		a.issuers[e.Issuer.URL] = newIssuer(e, o)
	}
	return a, nil
}

// Close ends the requests to the issuers, and waits for the goroutines. Tokens whose keys are known are authenticated afterwards too.
func (a *Authenticator) Close() {
	for _, i := range a.issuers {
		i.close()
	}
}

// AuthenticateToken implements authn.TokenAuthenticator. There is no opinion of what is not a signed token of one of the issuers. A
// token of an issuer whose keys are not known yet is refused at once.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string) (*authn.Response, error) {
	read, ok := jose.Read(token, a.o.Limits.Token)
	if !ok {
		return nil, nil
	}
	i := a.issuers[read.Issuer()]
	if i == nil {
		return nil, nil
	}
	begun := time.Now()
	resp, err := i.authenticate(ctx, read)
	a.o.Hooks.Authenticated(i.Issuer.URL, err, time.Since(begun))
	return resp, err
}

// Initialized returns nil if the keys of all issuers are known. Otherwise the error tells why those of one are not.
func (a *Authenticator) Initialized() error {
	for url, i := range a.issuers {
		if err := i.provider.Ready(); err != nil {
			return fmt.Errorf("oidc: authenticator for issuer %q is not healthy: %w", url, err)
		}
	}
	return nil
}

// Wait waits until the keys of all issuers are known. If ctx ends before, the error is that of Initialized.
func (a *Authenticator) Wait(ctx context.Context) error {
	for _, i := range a.issuers {
		if err := i.provider.Wait(ctx); err != nil {
			return cmp.Or(a.Initialized(), err)
		}
	}
	return nil
}
