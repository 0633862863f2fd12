package authn

import (
	"errors"
	"net/http"
	"slices"
)

// Union calls authenticators in order and returns the first user that one of them finds. If none finds a user and some fail, it
// returns the errors of all: wrong credentials are never treated like absent ones. An empty union has no opinion.
func Union(members ...Authenticator) Authenticator { return union(slices.Clone(members)) }

type union []Authenticator

// Authenticate implements Authenticator.
func (u union) Authenticate(r *http.Request) (*Response, error) {
	var errs []error
	for _, m := range u {
		resp, err := m.Authenticate(r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if resp != nil {
			return resp, nil
		}
	}
	return nil, errors.Join(errs...)
}
