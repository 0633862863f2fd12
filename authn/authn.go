// Package authn identifies the user of a request.
//
// An [Authenticator] reads a request and returns its user, or no opinion, or an error if the request has wrong credentials.
// [Union] combines authenticators. [Anonymous] authenticates requests without credentials as system:anonymous. The context of the
// request carries the user ([WithUser], [UserFrom]).
//
// The rules are those of https://kubernetes.io/docs/reference/access-authn-authz/authentication/.
package authn

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Names of users, groups and extra keys that have a meaning in Kubernetes.
const (
	AnonymousUser      = "system:anonymous"       // name of the anonymous user
	UnauthenticatedAll = "system:unauthenticated" // group of the anonymous user
	AuthenticatedAll   = "system:authenticated"   // group of all other users
	MastersGroup       = "system:masters"         // group whose members may do everything
	// CredentialIDKey is the extra key for the id of the credential of a request.
	CredentialIDKey = "authentication.kubernetes.io/credential-id"
)

// User is the user of a request. A User in a context must not be changed; copy it to change it. The zero User is not a valid
// user: a server answers a request of a user without a name with 401.
type User struct {
	Name   string              // unique among users, not empty
	UID    string              // unique over time; may be empty
	Groups []string            // groups that the user is a member of
	Extra  map[string][]string // further attributes of the user
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

// Clone returns a copy of u that shares no slices and maps with it.
func (u *User) Clone() *User {
	out := *u
	out.Groups = slices.Clone(u.Groups)
	out.Extra = maps.Clone(u.Extra)
	for key, values := range out.Extra {
		out.Extra[key] = slices.Clone(values)
	}
	return &out
}

// Response is a successful authentication. Its User has a name. The receiver must not change the slices and maps in it.
type Response struct {
	// User is the user of the request.
	User User
	// Audiences are the audiences of the server (see [WithAudiences]) for which the credential is valid. It is nil if the
	// credential is not for particular audiences.
	Audiences []string
	// Warnings are sent to the client in Warning headers.
	Warnings []string
	// AuditAnnotations are added to the audit event of the request. Keys are qualified names, such as
	// "authentication.kubernetes.io/credential-id".
	AuditAnnotations map[string]string

	noCredential bool
}

// NoCredential reports whether r is a response of Anonymous, which looks for no credential. A credential may be that of
// system:anonymous too: an authenticating proxy forwards the requests of anonymous users with a client certificate of its own.
func (r *Response) NoCredential() bool { return r.noCredential }

// Authenticator identifies the user of a request. It must not change the request, and may be called concurrently.
type Authenticator interface {
	// Authenticate returns the user. A nil Response with a nil error means no opinion: the request has none of the credentials
	// that this authenticator checks. An error means that the request has such credentials and that they are wrong. The error is
	// never sent to the client.
	Authenticate(r *http.Request) (*Response, error)
}

// Func is a function that implements Authenticator.
type Func func(r *http.Request) (*Response, error)

// Authenticate implements Authenticator.
func (f Func) Authenticate(r *http.Request) (*Response, error) { return f(r) }

// Strip returns h without the headers that a reads besides those that StripCredentials removes, if a has a method
// Strip(http.Header) http.Header, as a [Proxy] and the authenticators that this package makes of others have. It does not change h.
func Strip(a Authenticator, h http.Header) http.Header {
	if s, ok := a.(interface{ Strip(http.Header) http.Header }); ok {
		return s.Strip(h)
	}
	return h
}

// ready calls the method Ready(context.Context) error of an authenticator, if it has one.
func ready(ctx context.Context, a any) error {
	if r, ok := a.(interface{ Ready(context.Context) error }); ok {
		return r.Ready(ctx)
	}
	return nil
}

type userKey struct{}

// WithUser returns a context that carries u. UserFrom returns it.
func WithUser(ctx context.Context, u *User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// IsUserKey reports whether key is the key under which a context has its user, a *User. A context type that stores the user
// itself calls IsUserKey in its method Value.
func IsUserKey(key any) bool {
	_, is := key.(userKey)
	return is
}

// UserFrom returns the user of a context, or nil if it has none.
func UserFrom(ctx context.Context) *User {
	u, _ := ctx.Value(userKey{}).(*User)
	return u
}

type audiencesKey struct{}

// WithAudiences returns a context that carries the audiences of the server. An authenticator of tokens with audiences accepts a
// token that has one of them. The slice must not be changed afterwards.
func WithAudiences(ctx context.Context, audiences []string) context.Context {
	return context.WithValue(ctx, audiencesKey{}, audiences)
}

// AudiencesFrom returns the audiences of a context, or nil if the server has none.
func AudiencesFrom(ctx context.Context) []string {
	audiences, _ := ctx.Value(audiencesKey{}).([]string)
	return audiences
}

// System returns the user for requests that a server makes to itself: system:apiserver in the group system:masters. The caller
// owns the result.
func System() *User {
	return &User{Name: "system:apiserver", Groups: []string{MastersGroup, AuthenticatedAll}}
}

const accountPrefix = "system:serviceaccount"

// ServiceAccount returns the user of a service account, with the groups that
// https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/ names. The caller owns the result.
func ServiceAccount(namespace, name string) *User {
	return &User{
		Name:   accountPrefix + ":" + namespace + ":" + name,
		Groups: []string{accountPrefix + "s", accountPrefix + "s:" + namespace, AuthenticatedAll},
	}
}

// SplitServiceAccount returns the namespace and the name of the service account whose user has a name. ok is false if the name is
// not that of a service account: of the form "system:serviceaccount:NAMESPACE:NAME", with a namespace and a name that a
// ServiceAccount may have.
func SplitServiceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, accountPrefix+":")
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", "", false
	}
	return namespace, name, true
}
