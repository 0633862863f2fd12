package authn

import (
	"errors"
	"net/http"
	"slices"
)

// Union asks authenticators in order; the first that knows the user ends it. When none does and some failed, the
// errors of all are the answer: a wrong credential is never taken for none. An empty union has no opinion.
func Union(members ...Authenticator) Authenticator { return union(slices.Clone(members)) }

type union []Authenticator

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
