package authn

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/runtime/live"
)

// Live is an authenticator whose named members may be added and removed while it is in use. The members are called as in a
// [Union], in the order of kube-apiserver: first the members with the names of this package ([RequestHeader] and the others),
// then the members with other names, in the order in which these names were first added. If a member returns the response of
// [Anonymous], the members after it are called too. The first other user is the result. If there is none, an error of a
// member wins over system:anonymous. Each request is authenticated by the members that one call of [Live.Now] returned.
//
// Errors begin with the name of the member, for the log. The members that are made by [BearerToken] are one union of tokens, in the place of the first of them, behind a cache
// ([CacheTokens]). The cache begins anew when a member changes, so that a token of a removed member ends at once.
//
// The zero Live has no members and no opinion. All methods may be called concurrently. A Live must not be copied.
type Live struct {
	// Cache are the options of the cache of tokens. They must not be changed when the Live is in use.
	Cache CacheOptions

	members live.Members[Authenticator]
	mu      sync.Mutex // guards now
	now     *members   // of the last call of Now
}

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

// Current is what [Live.Now] returns: the members of a Live at one time.
type Current interface {
	Authenticator
	// AuthenticateToken authenticates a token by the members that are made by BearerToken, as their union. There is no opinion if
	// no member knows the token.
	TokenAuthenticator
	// Strip returns the headers of a request without credentials: without those that StripCredentials removes, and without the
	// headers of members that have a method Strip(http.Header) http.Header, such as a Proxy. It does not change h.
	Strip(h http.Header) http.Header
}

// Now returns an authenticator with the current members. Results are comparable with ==, and are equal while no member changes.
func (l *Live) Now() Current {
	of := l.members.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil || l.now.of != of {
		l.now = newMembers(of, l.Cache)
	}
	return l.now
}

// Authenticate implements Authenticator.
func (l *Live) Authenticate(r *http.Request) (*Response, error) { return l.Now().Authenticate(r) }

// AuthenticateToken implements TokenAuthenticator, as Current does.
func (l *Live) AuthenticateToken(ctx context.Context, token string) (*Response, error) {
	return l.Now().AuthenticateToken(ctx, token)
}

// members are the members of a Live at one time.
type members struct {
	of     *[]live.Member[Authenticator]
	called []Authenticator    // all members in order, with one for all tokens
	tokens TokenAuthenticator // nil if there are none
}

func newMembers(of *[]live.Member[Authenticator], o CacheOptions) *members {
	m := &members{of: of}
	var tokens tokenUnion
	var names []string // of the members of tokens
	at := 0
	for _, one := range *of {
		if b, ok := one.Value.(bearer); ok {
			if tokens == nil {
				at = len(m.called)
				m.called = append(m.called, nil)
			}
			tokens, names = append(tokens, namedTokens{b.tokens, one.Name}), append(names, one.Name)
			continue
		}
		m.called = append(m.called, Named(one.Name, one.Value))
	}
	if tokens != nil {
		m.tokens = CacheTokens(tokens, o)
		m.called[at] = bearer{m.tokens, strings.Join(names, ", ")}
	}
	return m
}

// Strip implements Current.
func (m *members) Strip(h http.Header) http.Header {
	h = StripCredentials(h)
	for _, one := range m.called {
		h = Strip(one, h)
	}
	return h
}

// AuthenticateToken implements TokenAuthenticator.
func (m *members) AuthenticateToken(ctx context.Context, token string) (*Response, error) {
	if m.tokens == nil {
		return nil, nil
	}
	return m.tokens.AuthenticateToken(ctx, token)
}

// Authenticate implements Authenticator.
func (m *members) Authenticate(r *http.Request) (*Response, error) {
	return FirstUser(r, m.called)
}
