// Package authn finds out who is asking.
//
// An [Authenticator] looks at a request and says who made it, that it has no opinion, or that the credentials
// it was made for are wrong. Authenticators are combined by [Union]; [Anonymous] gives those without credentials
// the name system:anonymous. The user travels in the request's context ([WithUser], [UserFrom]).
//
// The rules are those of https://kubernetes.io/docs/reference/access-authn-authz/authentication/.
package authn

import (
	"context"
	"net/http"
)

// Names that Kubernetes gives a meaning.
const (
	AnonymousUser      = "system:anonymous"
	UnauthenticatedAll = "system:unauthenticated" // group of the anonymous user
	AuthenticatedAll   = "system:authenticated"   // group of everybody else
	MastersGroup       = "system:masters"         // may do everything
	// CredentialIDKey is the extra key that names the credential of a request.
	CredentialIDKey = "authentication.kubernetes.io/credential-id"
)

// User is who makes a request. It is immutable once it is in a context: copy it to change it. The zero User is
// nobody: a server answers a request of a user without a name with 401.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// InGroup reports whether u is a member of group.
func (u *User) InGroup(group string) bool {
	for _, g := range u.Groups {
		if g == group {
			return true
		}
	}
	return false
}

// Response is a successful authentication, whose User has a name. Who receives one must not change what it refers to.
type Response struct {
	User User
	// Audiences are those of the server's audiences (see [WithAudiences]) that the credential is valid for; nil when the
	// credential is meant for none in particular.
	Audiences []string
	// Warnings are shown to the client in Warning headers.
	Warnings []string
	// AuditAnnotations are added to the audit event of the request. Keys are qualified names, such as
	// "authentication.kubernetes.io/credential-id".
	AuditAnnotations map[string]string
}

// Authenticator says who made a request. A nil Response with a nil error is no opinion: the request carries none
// of the credentials this authenticator is for. An error says that it does, and they are wrong; clients are never
// shown why. Authenticators are called concurrently and must not change the request.
type Authenticator interface {
	Authenticate(r *http.Request) (*Response, error)
}

// Func is a function that is an Authenticator.
type Func func(r *http.Request) (*Response, error)

// Authenticate implements Authenticator.
func (f Func) Authenticate(r *http.Request) (*Response, error) { return f(r) }

type userKey struct{}

// WithUser returns a context that carries u.
func WithUser(ctx context.Context, u *User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// IsUserKey reports whether key asks a context for its user, a *User. It is for the method Value of contexts that have one.
func IsUserKey(key any) bool {
	_, is := key.(userKey)
	return is
}

// UserFrom returns the user of a context, or nil when nobody was authenticated.
func UserFrom(ctx context.Context) *User {
	u, _ := ctx.Value(userKey{}).(*User)
	return u
}

type audiencesKey struct{}

// WithAudiences returns a context that carries the audiences a server identifies as. An authenticator of tokens that name
// audiences accepts a token that names one of them. The slice must not be changed afterwards.
func WithAudiences(ctx context.Context, audiences []string) context.Context {
	return context.WithValue(ctx, audiencesKey{}, audiences)
}

// AudiencesFrom returns the audiences of a context; nil when the server identifies as none.
func AudiencesFrom(ctx context.Context) []string {
	audiences, _ := ctx.Value(audiencesKey{}).([]string)
	return audiences
}

// System returns the user that a server is to itself: system:apiserver in the group system:masters. The User is the
// caller's own.
func System() *User {
	return &User{Name: "system:apiserver", Groups: []string{MastersGroup, AuthenticatedAll}}
}

// ServiceAccount returns the user that a service account is, in the groups that
// https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/ names. The User is the caller's own.
func ServiceAccount(namespace, name string) *User {
	const prefix = "system:serviceaccount"
	return &User{
		Name:   prefix + ":" + namespace + ":" + name,
		Groups: []string{prefix + "s", prefix + "s:" + namespace, AuthenticatedAll},
	}
}
