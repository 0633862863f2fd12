package authn

import (
	"context"
	"fmt"
	"net/http"
)

// Named returns an authenticator that calls a, and whose errors begin with a name, so that a log shows which authenticator has refused
// a credential.
func Named(name string, a Authenticator) Authenticator { return namedAuthenticator{a, name} }

type namedAuthenticator struct {
	Authenticator
	name string
}

// Authenticate implements Authenticator.
func (n namedAuthenticator) Authenticate(r *http.Request) (*Response, error) {
	resp, err := n.Authenticator.Authenticate(r)
	return resp, named(n.name, err)
}

// Strip is for the function Strip.
func (n namedAuthenticator) Strip(h http.Header) http.Header { return Strip(n.Authenticator, h) }

// Ready calls the method Ready of the authenticator, if it has one.
func (n namedAuthenticator) Ready(ctx context.Context) error { return ready(ctx, n.Authenticator) }

// namedTokens is Named for an authenticator of tokens.
type namedTokens struct {
	TokenAuthenticator
	name string
}

// AuthenticateToken implements TokenAuthenticator.
func (n namedTokens) AuthenticateToken(ctx context.Context, token string) (*Response, error) {
	resp, err := n.TokenAuthenticator.AuthenticateToken(ctx, token)
	return resp, named(n.name, err)
}

// Ready calls the method Ready of the authenticator, if it has one.
func (n namedTokens) Ready(ctx context.Context) error { return ready(ctx, n.TokenAuthenticator) }

// named puts a name before an error, if there are both.
func named(name string, err error) error {
	if err == nil || name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
