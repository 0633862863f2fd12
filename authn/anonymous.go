package authn

import "net/http"

// Anonymous authenticates every request as system:anonymous. It must be called after all other authenticators, as [WithAnonymous]
// does. As a member of a Union it would hide the errors of the members before it.
func Anonymous() Authenticator {
	return Func(func(*http.Request) (*Response, error) {
		return &Response{User: User{Name: AnonymousUser, Groups: []string{UnauthenticatedAll}}}, nil
	})
}

// WithAnonymous returns an authenticator that calls a, and authenticates a request as system:anonymous if a has no opinion. A
// request with wrong credentials remains an error.
func WithAnonymous(a Authenticator) Authenticator {
	anonymous := Anonymous()
	return Func(func(r *http.Request) (*Response, error) {
		if resp, err := a.Authenticate(r); resp != nil || err != nil {
			return resp, err
		}
		return anonymous.Authenticate(r)
	})
}
