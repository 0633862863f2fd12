package authn

import (
	"context"
	"net/http"
	"slices"
)

// Anonymous authenticates requests as system:anonymous: those whose URL has one of the paths exactly, such as "/livez", or every
// request if there are no paths. It must be called after all other authenticators, as [WithAnonymous] does. As a member of a Union
// it would hide the errors of the members before it.
func Anonymous(paths ...string) Authenticator {
	paths = slices.Clone(paths)
	return Func(func(r *http.Request) (*Response, error) {
		if len(paths) > 0 && (r.URL == nil || !slices.Contains(paths, r.URL.Path)) {
			return nil, nil
		}
		return &Response{User: User{Name: AnonymousUser, Groups: []string{UnauthenticatedAll}}, noCredential: true}, nil
	})
}

// WithAnonymous returns an authenticator that calls a, and the result of Anonymous(paths...) if a has no opinion. A request with
// wrong credentials remains an error.
func WithAnonymous(a Authenticator, paths ...string) Authenticator {
	return withAnonymous{a, Anonymous(paths...)}
}

type withAnonymous struct {
	Authenticator
	anonymous Authenticator
}

// Authenticate implements Authenticator.
func (w withAnonymous) Authenticate(r *http.Request) (*Response, error) {
	if resp, err := w.Authenticator.Authenticate(r); resp != nil || err != nil {
		return resp, err
	}
	return w.anonymous.Authenticate(r)
}

// Strip is for the function Strip.
func (w withAnonymous) Strip(h http.Header) http.Header { return Strip(w.Authenticator, h) }

// Ready calls the method Ready of the authenticator, if it has one.
func (w withAnonymous) Ready(ctx context.Context) error { return ready(ctx, w.Authenticator) }
