package authn

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/keelson-dev/keelson/runtime/live"
)

// Live is an authenticator whose members come and go while it is asked; each is known by its name. They are asked as those
// of a [Union] are, in kube-apiserver's order, which this package's names list ([RequestHeader] and the others), and
// members of other names after those, in the order in which they came first. Each request is asked of the members there
// are when it is asked. The zero Live is empty and has no opinion. All methods may be called concurrently; a Live must not be
// copied.
type Live struct{ members live.Members[Authenticator] }

// ErrMember is wrapped by the error of a Set that names no member.
var ErrMember = errors.New("a member needs a name and an authenticator")

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

// Authenticate implements Authenticator.
func (l *Live) Authenticate(r *http.Request) (*Response, error) {
	var errs []error
	for _, m := range *l.members.Now() {
		resp, err := m.Value.Authenticate(r)
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
