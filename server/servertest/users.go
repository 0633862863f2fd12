package servertest

import (
	"crypto/rand"
	"errors"
	"net/http"
	"sync"

	"github.com/keelson-dev/keelson/authn"
)

// users are an authn.Authenticator: whom the server knows, and, of requests of nobody that it knows, those that AddUser added and
// the administrator.
type users struct {
	known authn.Authenticator // set before the server serves

	mu      sync.Mutex // guards below
	byToken map[string]authn.User
	added   authn.Authenticator // nil: nobody
}

// AddUser makes somebody else known to the server and returns the bearer token that stands for that user. What the user
// may do is the authorizer's to say: without server.Policy.Authorizer, all if it is in the group system:masters, and
// otherwise hardly more than to discover what there is. Authenticators of extensions are asked before, and
// server.Policy.WrapAuthenticator is given an authenticator that knows these users, too. A user without a name is told as
// a [Fault] is that makes no sense.
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

// identified tells recordings who makes a request, which those that are refused show too.
type identified struct{ of authn.Authenticator }

// Authenticate implements authn.Authenticator.
func (n identified) Authenticate(r *http.Request) (*authn.Response, error) {
	who, err := n.of.Authenticate(r)
	if who != nil {
		noteUser(r, &who.User)
	}
	return who, err
}
