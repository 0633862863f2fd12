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

// FirstUser calls authenticators in order and returns the first response that is not that of [Anonymous]. If there is none, it returns
// the errors of all, or, if none fails, the first response of Anonymous. The result may be no opinion.
func FirstUser(r *http.Request, members []Authenticator) (*Response, error) {
	var anonymous *Response
	var errs []error
	for _, one := range members {
		switch resp, err := one.Authenticate(r); {
		case err != nil:
			errs = append(errs, err)
		case resp == nil:
		case !resp.NoCredential():
			return resp, nil
		case anonymous == nil:
			anonymous = resp
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return anonymous, nil
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
