package authn

import (
	"context"
	"net/http"
	"slices"
)

// AuthenticatedGroup returns an authenticator that calls a and adds the group system:authenticated to the user. The user
// system:anonymous, and users who are in this group or in system:unauthenticated already, are not changed. The result of a is
// copied, not changed.
func AuthenticatedGroup(a Authenticator) Authenticator {
	return grouped{a}
}

type grouped struct{ Authenticator }

// Authenticate implements Authenticator.
func (g grouped) Authenticate(r *http.Request) (*Response, error) {
	return withAuthenticated(g.Authenticator.Authenticate(r))
}

// Strip is for the function Strip.
func (g grouped) Strip(h http.Header) http.Header { return Strip(g.Authenticator, h) }

// Ready calls the method Ready of the authenticator, if it has one.
func (g grouped) Ready(ctx context.Context) error { return ready(ctx, g.Authenticator) }

// AuthenticatedTokens is AuthenticatedGroup for an authenticator of tokens.
func AuthenticatedTokens(tokens TokenAuthenticator) TokenAuthenticator { return groupedTokens{tokens} }

type groupedTokens struct{ tokens TokenAuthenticator }

// AuthenticateToken implements TokenAuthenticator.
func (g groupedTokens) AuthenticateToken(ctx context.Context, token string) (*Response, error) {
	return withAuthenticated(g.tokens.AuthenticateToken(ctx, token))
}

// Ready calls the method Ready of the authenticator, if it has one.
func (g groupedTokens) Ready(ctx context.Context) error { return ready(ctx, g.tokens) }

// withAuthenticated returns a response whose user is in system:authenticated.
func withAuthenticated(resp *Response, err error) (*Response, error) {
	if err != nil || resp == nil {
		return nil, err
	}
	if u := &resp.User; u.Name == AnonymousUser || u.InGroup(AuthenticatedAll) || u.InGroup(UnauthenticatedAll) {
		return resp, nil
	}
	grown := *resp
	grown.User.Groups = append(slices.Clip(resp.User.Groups), AuthenticatedAll)
	return &grown, nil
}
