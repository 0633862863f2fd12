package jwt

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/internal/jose"
)

// issuer authenticates the tokens of one issuer.
type issuer struct {
	*entry
	*verifier
	sources *sources // nil if no groups are made of a claim
}

func newIssuer(e *entry, o Options) *issuer {
	i := &issuer{entry: e, verifier: newVerifier(e, o)}
	if claim := e.ClaimMappings.Groups.Claim; claim != "" {
		i.sources = newSources(claim, e.Issuer.URL, i.verifier)
	}
	return i
}

func (i *issuer) close() {
	if i.sources != nil {
		i.sources.close()
	}
	i.provider.Close()
	i.client.CloseIdleConnections()
}

// authenticate returns the user of a token.
func (i *issuer) authenticate(ctx context.Context, token jose.Token) (*authn.Response, error) {
	claims, err := i.verify(ctx, token, i.provider)
	if err != nil {
		return nil, fmt.Errorf("oidc: verify token: %w", err)
	}
	if i.sources != nil {
		if err := i.sources.add(ctx, claims); err != nil {
			return nil, fmt.Errorf("oidc: could not expand distributed claims: %w", err)
		}
	}
	user, err := i.user(ctx, claims)
	if err != nil {
		return nil, err
	}
	return &authn.Response{User: *user}, nil
}
