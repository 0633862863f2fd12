package authn

import (
	"net/http"
	"slices"
)

// AuthenticatedGroup returns an authenticator that calls a and adds the group system:authenticated to the user. The user
// system:anonymous, and users who are in this group or in system:unauthenticated already, are not changed. The result of a is
// copied, not changed.
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
