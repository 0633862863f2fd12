package authn

import (
	"net/http"
	"slices"
)

// AuthenticatedGroup asks a, and makes its users members of system:authenticated, but for system:anonymous and
// those who are in it, or in system:unauthenticated, already. What a returns is not changed but copied.
func AuthenticatedGroup(a Authenticator) Authenticator {
	return Func(func(r *http.Request) (*Response, error) {
		resp, err := a.Authenticate(r)
		if err != nil || resp == nil {
			return nil, err
		}
		if u := &resp.User; u.Name == AnonymousUser || u.InGroup(AuthenticatedAll) || u.InGroup(UnauthenticatedAll) {
			return resp, nil
		}
		grown := *resp
		grown.User.Groups = append(slices.Clip(resp.User.Groups), AuthenticatedAll)
		return &grown, nil
	})
}
