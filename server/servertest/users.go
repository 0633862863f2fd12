package servertest

import (
	"crypto/rand"
	"errors"
	"net/http"
	"sync"

	"github.com/keelson-dev/keelson/authn"
)

// users are an authn.Authenticator: those that AddUser added, the administrator, and whom the server knows otherwise.
type users struct {
	known authn.Authenticator // set before the server serves

	mu      sync.Mutex // guards below
	byToken map[string]authn.User
	added   authn.Authenticator // nil: nobody
}

// AddUser makes somebody else known to the server and returns the bearer token that stands for that user. What the user
// may do is the authorizer's to say: without server.Policy.Authorizer, all if it is in the group system:masters, and
// otherwise hardly more than to discover what there is. A user without a name is told as a [Fault] is that makes no sense.
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
	u.mu.Lock()
	added := u.added
	u.mu.Unlock()
	if added != nil {
		if who, err := added.Authenticate(r); err == nil && who != nil {
			return noted(r, who), nil
		}
	}
	who, err := u.known.Authenticate(r)
	return noted(r, who), err
}

// noted tells recordings who makes a request, which those that are refused show too.
func noted(r *http.Request, who *authn.Response) *authn.Response {
	if who != nil {
		noteUser(r, &who.User)
	}
	return who
}
