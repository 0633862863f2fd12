package jwt

import (
	"context"
	"net/http"
	"time"

	"github.com/keelson-dev/keelson/authn/internal/jose"
	"github.com/keelson-dev/keelson/authn/jwt/internal/provider"
)

// verifier verifies the tokens of an entry, and those with its distributed claims.
type verifier struct {
	algorithms []string
	audiences  []string
	client     *http.Client
	provider   *provider.Provider // of the issuer of the entry
	now        func() time.Time
	o          Options
}

func newVerifier(e *entry, o Options) *verifier {
	v := &verifier{
		algorithms: e.SigningAlgorithms, audiences: e.Issuer.Audiences, client: provider.NewClient(e.roots, o.Dial, o.Limits.provider()), now: time.Now, o: o,
	}
	if v.algorithms == nil {
		v.algorithms = jose.Algorithms()
	}
	v.provider = v.newProvider(e.Issuer.URL, e.Issuer.DiscoveryURL)
	return v
}

// newProvider returns the provider of the keys of an issuer.
func (v *verifier) newProvider(url, discovery string) *provider.Provider {
	return provider.New(provider.Options{
		Issuer: url, DiscoveryURL: discovery, Client: v.client, Limits: v.o.Limits.provider(),
		Fetched: func(keys string, err error) { v.o.Hooks.Fetched(url, keys, err) },
	})
}

// verify returns the claims of a token that is signed with a key of a provider, valid now, and for one of the audiences.
func (v *verifier) verify(ctx context.Context, token jose.Token, by *provider.Provider) (*claims, error) {
	signed, err := token.Check(v.algorithms)
	if err != nil {
		return nil, err
	}
	text, err := by.Verify(ctx, signed)
	if err != nil {
		return nil, err
	}
	claims, err := readClaims(text)
	if err != nil {
		return nil, err
	}
	if err := claims.inTime(v.now()); err != nil {
		return nil, err
	}
	return claims, claims.isFor(v.audiences)
}
