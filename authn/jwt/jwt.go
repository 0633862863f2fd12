package jwt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/internal/jose"
)

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
