package servertest

import (
	"crypto/rand"
	"errors"
	"net/http"
	"sync"

	"github.com/keelson-dev/keelson/authn"
)

// users is an authenticator that first calls the server's authenticator. If that does not authenticate a request, it accepts the
// users of AddUser and the administrator.
type users struct {
	known authn.Authenticator // set before the server serves

	mu      sync.Mutex // guards the fields below
	byToken map[string]authn.User
	added   authn.Authenticator // nil if there are no users
}

// AddUser adds a user to the server and returns the user's bearer token. The authorizer decides what the user may do. Without
// server.Policy.Authorizer a member of the group system:masters may do everything, and others little more than discovery. All
// authenticators of the server are called before the token is compared with those of AddUser. The authenticator that
// server.Policy.WrapAuthenticator receives accepts these users, too. A user without a name is reported like a mistaken [Fault].
func (s *Server) AddUser(u authn.User) (token string) {
	if u.Name == "" {
		s.intercept.mistaken("AddUser", errors.New("a user needs a name, by which the authorizer and refusals know it"))
	}
	token = rand.Text()
	s.users.add(token, u)
	return token
}

func (u *users) add(token string, who authn.User) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byToken == nil {
		u.byToken = map[string]authn.User{}
	}
	u.byToken[token] = who
	u.added = authn.AuthenticatedGroup(authn.BearerToken(authn.StaticTokens(u.byToken)))
}

// Authenticate implements authn.Authenticator.
func (u *users) Authenticate(r *http.Request) (*authn.Response, error) {
	who, err := u.known.Authenticate(r)
	if err == nil && who != nil && who.User.Name != authn.AnonymousUser {
		return who, nil
	}
	u.mu.Lock()
	added := u.added
	u.mu.Unlock()
	if added != nil {
		if who, err := added.Authenticate(r); err == nil && who != nil {
			return who, nil
		}
	}
	return who, err
}

// identified is an authenticator that passes the user to recordings, so that they show the user of refused requests too.
type identified struct{ of authn.Authenticator }

// Authenticate implements authn.Authenticator.
func (n identified) Authenticate(r *http.Request) (*authn.Response, error) {
	who, err := n.of.Authenticate(r)
	if who != nil {
		noteUser(r, &who.User)
	}
	return who, err
}
