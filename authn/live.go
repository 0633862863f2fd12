package authn

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/keelson-dev/keelson/runtime/live"
)

// Live is an authenticator whose members come and go while it is asked; each is known by its name. They are asked as those
// of a [Union] are, in kube-apiserver's order, which this package's names list ([RequestHeader] and the others), and
// members of other names after those, in the order in which they came first. A member that takes a request for one of
// system:anonymous does not keep the members after it from knowing the user. A request is asked of one [Live.Now].
//
// The zero Live is empty and has no opinion. All methods may be called concurrently; a Live must not be copied.
type Live struct{ members live.Members[Authenticator] }

// ErrMember is wrapped by the error of a Set without a name or an authenticator.
var ErrMember = errors.New("an authenticator needs a name and must not be nil")

// Set adds a member, or replaces the one of that name, in one step for all requests that are asked afterwards.
func (l *Live) Set(name string, a Authenticator) error {
	if name == "" || a == nil {
		return ErrMember
	}
	l.members.Set(name, a, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return nil
}

// Remove takes a member away, and reports whether there was one of that name.
func (l *Live) Remove(name string) bool { return l.members.Remove(name) }

// Names lists the members, in the order in which they are asked.
func (l *Live) Names() []string { return l.members.Names() }

// Now returns the members as they are now, comparable with ==: the same while no member changes.
func (l *Live) Now() Authenticator { return members{l.members.Now()} }

// Authenticate implements Authenticator.
func (l *Live) Authenticate(r *http.Request) (*Response, error) { return l.Now().Authenticate(r) }

// members are those of a Live at one time.
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
