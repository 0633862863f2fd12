package authn

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/keelson-dev/keelson/runtime/live"
)

// Live is an authenticator whose named members may be added and removed while it is in use. The members are called as in a
// [Union], in the order of kube-apiserver: first the members with the names of this package ([RequestHeader] and the others),
// then the members with other names, in the order in which these names were first added. If a member authenticates a request as
// system:anonymous, the members after it are called too. The first other user is the result. If there is none, an error of a
// member wins over system:anonymous. Each request is authenticated by the members that one call of [Live.Now] returned.
//
// The zero Live has no members and no opinion. All methods may be called concurrently. A Live must not be copied.
type Live struct{ members live.Members[Authenticator] }

// ErrMember is the error of Live.Set if the name is empty or the authenticator is nil.
var ErrMember = errors.New("an authenticator needs a name and must not be nil")

// Set adds a member, or replaces the member with this name. The change is atomic for all requests that are authenticated
// afterwards. The error wraps ErrMember.
func (l *Live) Set(name string, a Authenticator) error {
	if name == "" || a == nil {
		return ErrMember
	}
	l.members.Set(name, a, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return nil
}

// Remove removes a member, and reports whether there was a member with this name.
func (l *Live) Remove(name string) bool { return l.members.Remove(name) }

// Names returns the names of the members, in the order in which they are called.
func (l *Live) Names() []string { return l.members.Names() }

// Now returns an authenticator with the current members. Results are comparable with ==, and are equal while no member changes.
func (l *Live) Now() Authenticator { return members{l.members.Now()} }

// Authenticate implements Authenticator.
func (l *Live) Authenticate(r *http.Request) (*Response, error) { return l.Now().Authenticate(r) }

// members are the members of a Live at one time.
type members struct{ of *[]live.Member[Authenticator] }

// Authenticate implements Authenticator.
func (m members) Authenticate(r *http.Request) (*Response, error) {
	var anonymous *Response
	var errs []error
	for _, one := range *m.of {
		switch resp, err := one.Value.Authenticate(r); {
		case err != nil:
			errs = append(errs, err)
		case resp == nil:
		case resp.User.Name != AnonymousUser:
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
