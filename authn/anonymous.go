package authn

import "net/http"

// Anonymous takes every request for one of system:anonymous. It belongs after a Union of all that know users, see
// [WithAnonymous]: as a member of a Union it would hide the errors of those before it.
func Anonymous() Authenticator {
	return Func(func(*http.Request) (*Response, error) {
		return &Response{User: User{Name: AnonymousUser, Groups: []string{UnauthenticatedAll}}}, nil
	})
}

// WithAnonymous asks a, and takes requests of which a has no opinion for those of system:anonymous. A request with a
// wrong credential stays an error.
func WithAnonymous(a Authenticator) Authenticator {
	anonymous := Anonymous()
	return Func(func(r *http.Request) (*Response, error) {
		if resp, err := a.Authenticate(r); resp != nil || err != nil {
			return resp, err
		}
		return anonymous.Authenticate(r)
	})
}
