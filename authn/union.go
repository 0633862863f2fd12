package authn

import (
	"context"
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

// Strip is for the function Strip.
func (u union) Strip(h http.Header) http.Header {
	for _, m := range u {
		h = Strip(m, h)
	}
	return h
}

// Ready calls the methods Ready of the members that have one.
func (u union) Ready(ctx context.Context) error {
	var errs []error
	for _, m := range u {
		errs = append(errs, ready(ctx, m))
	}
	return errors.Join(errs...)
}
