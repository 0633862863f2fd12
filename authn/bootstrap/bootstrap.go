// Package bootstrap authenticates bootstrap tokens, with which new nodes join a cluster. The tokens are in Secrets of the namespace
// kube-system: https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/.
//
//	tokens := bootstrap.New(runtime.Read[*corev1.Secret](host.Readers()), bootstrap.Options{})
//	err := host.Authenticate(authn.BootstrapTokens, authn.BearerToken(tokens))
package bootstrap

import (
	"context"
	"crypto/subtle"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names of the parts of bootstrap tokens.
const (
	Namespace    = metav1.NamespaceSystem                             // namespace of the Secrets
	SecretPrefix = "bootstrap-token-"                                 // name of a Secret, before the id of its token
	SecretType   = corev1.SecretType("bootstrap.kubernetes.io/token") // type of the Secrets
	UserPrefix   = "system:bootstrap:"                                // name of a user, before the id of its token
	Group        = "system:bootstrappers"                             // group of all users

	tokenID     = "token-id"
	tokenSecret = "token-secret"
	expiration  = "expiration"
	usage       = "usage-bootstrap-authentication"
	extraGroups = "auth-extra-groups"
)

// Options are the options of New. The zero Options is usable.
type Options struct {
	// Refused is called for a token that has the form of a bootstrap token and no user, with the public part of the token and the
	// reason. A nil Refused does nothing.
	Refused func(id, reason string)
}

// Authenticator authenticates bootstrap tokens. All methods may be called concurrently.
type Authenticator struct {
	secrets runtime.Reader[*corev1.Secret]
	refused func(id, reason string)
}

// New returns an authenticator for the tokens in secrets. It reads the Secret of a token at each call of AuthenticateToken, so that
// a token ends with its Secret, apart from the time that a cache in front remembers it.
func New(secrets runtime.Reader[*corev1.Secret], o Options) *Authenticator {
	if o.Refused == nil {
		o.Refused = func(string, string) {}
	}
	return &Authenticator{secrets, o.Refused}
}

// Ready returns nil if the Secrets can be read.
func (a *Authenticator) Ready(ctx context.Context) error { return a.secrets.Ready(ctx) }

// AuthenticateToken implements authn.TokenAuthenticator. There is no opinion of a token that has another form than a bootstrap token
// or no Secret, is expired, or must not be used for authentication. If the Secret cannot be read, the result is an error.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string) (*authn.Response, error) {
	id, secret, ok := split(token)
	if !ok {
		return nil, nil
	}
	stored, err := a.secrets.Get(ctx, Namespace, SecretPrefix+id, runtime.Freshness{})
	if apierrors.IsNotFound(err) {
		a.refused(id, "it has no Secret")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if reason := refusal(stored, id, secret); reason != "" {
		a.refused(id, reason)
		return nil, nil
	}
	groups, ok := groupsOf(stored)
	if !ok {
		a.refused(id, "a group in "+extraGroups+" of its Secret is not allowed")
		return nil, nil
	}
	return &authn.Response{User: authn.User{Name: UserPrefix + id, Groups: groups}}, nil
}

// split returns the two parts of a bootstrap token: six and sixteen lower case letters and digits, with a dot between.
func split(token string) (id, secret string, ok bool) {
	const idLength, secretLength = 6, 16
	if len(token) != idLength+1+secretLength || token[idLength] != '.' {
		return "", "", false
	}
	id, secret = token[:idLength], token[idLength+1:]
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	return id, secret, !strings.ContainsFunc(id, other) && !strings.ContainsFunc(secret, other)
}

// refusal returns why a token with a Secret is refused, or "" if it is not.
func refusal(stored *corev1.Secret, id, secret string) string {
	of := func(key string) string { return string(stored.Data[key]) }
	switch {
	case stored.DeletionTimestamp != nil:
		return "its Secret is being deleted"
	case stored.Type != SecretType:
		return "its Secret has another type than " + string(SecretType)
	case subtle.ConstantTimeCompare(stored.Data[tokenSecret], []byte(secret)) != 1:
		return "its secret part is wrong"
	case of(tokenID) != id:
		return "its Secret has another " + tokenID
	case expired(of(expiration)):
		return "it has expired, or " + expiration + " of its Secret is not a time in RFC 3339"
	case of(usage) != "true":
		return usage + " of its Secret is not true"
	}
	return ""
}

// expired reports whether a time in RFC 3339 has passed. A text that is not such a time has passed; no text has not.
func expired(text string) bool {
	if text == "" {
		return false
	}
	at, err := time.Parse(time.RFC3339, text)
	return err != nil || time.Now().After(at)
}

// groupsOf returns the groups of a token's user, in order. ok is false if a group is not allowed.
func groupsOf(stored *corev1.Secret) (groups []string, ok bool) {
	groups = []string{Group}
	if text := string(stored.Data[extraGroups]); text != "" {
		for group := range strings.SplitSeq(text, ",") {
			if !allowed(group) {
				return nil, false
			}
			groups = append(groups, group)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups), true
}

// allowed reports whether a token may have a group: https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/.
func allowed(group string) bool {
	const longest = 256 // characters after the prefix
	rest, ok := strings.CutPrefix(group, Group+":")
	if !ok || rest == "" || len(rest) > longest {
		return false
	}
	inner := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == ':' || c == '-' }
	for i := range len(rest) {
		if !inner(rest[i]) {
			return false
		}
	}
	last := rest[len(rest)-1]
	return last != ':' && last != '-'
}
