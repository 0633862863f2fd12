// Package serviceaccount issues and verifies the tokens of service accounts, by which programs are users of a server:
// https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/.
//
//	keys, err := serviceaccount.NewKeys(signer, former...)
//	tokens, err := serviceaccount.New(host.Readers(), keys, serviceaccount.Options{Issuers: []string{"https://kubernetes.default.svc"}})
//	err = host.Authenticate(authn.ServiceAccounts, authn.BearerToken(tokens))
//
// The package has no kinds and no paths. Package server/builtin/accounts is an extension that serves the kind ServiceAccount, the
// requests for tokens and the documents about the keys.
//
// # Tokens
//
// A token is a JSON Web Token (RFC 7519) in the compact form, signed by one of the [Keys]. There are two kinds:
//
//   - A bound token has one of the issuers of [Options], audiences, and a time at which it ends. It may be bound to a Secret, Pod or
//     Node. [Issuer.Issue] makes one.
//   - A legacy token has the issuer [LegacyIssuer], and is kept in a Secret, with which it ends. [Issuer.IssueLegacy] makes one.
//
// A token is verified in this order: its size, its form, its issuer, the signature, the times, the audiences, the account and the
// objects that it is bound to. A token that is larger than [MaxToken], has another form or is of another issuer is no token of a service
// account: then there is no opinion, so that other authenticators can verify it. Every later failure is an error, so that the request
// is refused even if it could be anonymous. Nothing is read from the storage for a token whose signature is wrong.
//
// # Accounts and objects
//
// The account must exist, with the uid in the token, and so must the object that the token is bound to. If it is being deleted, the token
// ends a minute after the time of its deletion. The objects are read from memory. If memory has no such object, or one with
// another uid, it is read again from the store: so a token that another server has just issued is accepted, and the failure is never
// final. A deletion is effective when its event has arrived, at once on the server that made it, for each token that is verified. A token that
// a server remembers stays valid for that time, which is 10 seconds by default: see Policy.TokenCache of package server.
//
// A token that is bound to a kind that the server does not serve is refused.
//
// # Differences from kube-apiserver
//
//   - The public key of the key that signs is always one of those that verify. kube-apiserver refuses its own tokens if
//     --service-account-key-file has other keys.
//   - RSA keys have at least 2,048 bits.
//   - A token has at most [MaxToken] bytes, and a larger one is not issued.
//   - Tokens that are bound to webhook configurations are refused, as by a kube-apiserver without the feature gate.
package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	corev1 "k8s.io/api/core/v1"
)

// MaxToken is the default of Options.MaxToken, and the size of the largest token that is issued, in bytes.
const MaxToken = 64 << 10

// Options are the options of New. The zero values stand for the defaults, except that of Issuers.
type Options struct {
	// Issuers are the issuers of bound tokens that are accepted, at least one. The first one is that of new tokens.
	Issuers []string
	// Audiences are those of the server: a request whose context has no audiences (authn.AudiencesFrom) wants one of them, and a token
	// without audiences is for all of them. nil means the first of Issuers.
	Audiences []string
	// NoLookup accepts legacy tokens without a look at their Secret and account, as --service-account-lookup=false of kube-apiserver
	// does. They then never end.
	NoLookup bool
	// MaxToken is the size of the largest token that is verified, in bytes; 0 means the constant MaxToken.
	MaxToken int
	// Hooks tell which tokens are used.
	Hooks Hooks
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Authenticator authenticates tokens of service accounts. Make one with New. All methods may be called concurrently.
type Authenticator struct {
	keys *Keys
	o    Options
	objects
}

// New returns an authenticator of the tokens that keys have signed. The accounts and Secrets are read from the server of from, and Pods
// and Nodes if it serves the kinds of k8s.io/api.
func New(from runtime.Readers, keys *Keys, o Options) (*Authenticator, error) {
	if from == nil || keys == nil || len(o.Issuers) == 0 || slices.Contains(o.Issuers, "") || o.MaxToken < 0 {
		return nil, errors.New("service accounts: want readers, keys, issuers that are not empty, and a MaxToken that is not negative")
	}
	if slices.Contains(o.Issuers, LegacyIssuer) {
		return nil, fmt.Errorf("service accounts: the issuer %q is that of tokens in Secrets: want another", LegacyIssuer)
	}
	if o.Audiences == nil {
		o.Audiences = o.Issuers[:1]
	}
	if o.MaxToken == 0 {
		o.MaxToken = MaxToken
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Hooks = o.Hooks.withDefaults()
	return &Authenticator{keys, o, objects{from}}, nil
}

// Ready returns nil if the accounts and Secrets can be read.
func (a *Authenticator) Ready(ctx context.Context) error {
	if err := runtime.Read[*corev1.ServiceAccount](a.from).Ready(ctx); err != nil {
		return err
	}
	return runtime.Read[*corev1.Secret](a.from).Ready(ctx)
}

// AuthenticateToken implements authn.TokenAuthenticator.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string) (*authn.Response, error) {
	if len(token) > a.o.MaxToken {
		return nil, nil
	}
	signed, err := jose.ParseSignedCompact(token, algorithms())
	if err != nil || len(signed.Signatures) != 1 {
		return nil, nil //nolint:nilerr // it is no token of ours
	}
	c, issuer, err := decode(signed.UnsafePayloadWithoutVerification())
	legacy := issuer == LegacyIssuer
	if !legacy && !slices.Contains(a.o.Issuers, issuer) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("service account token: %w", err)
	}
	if err := a.keys.now.Load().verify(signed); err != nil {
		return nil, err
	}
	audiences, err := a.audiences(ctx, c.Audiences)
	var resp *authn.Response
	switch {
	case legacy:
		resp, err = a.annotated(ctx, c, token, err)
	case err == nil:
		resp, err = a.bound(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	resp.Audiences = audiences
	return resp, nil
}

// audiences returns those of the wanted audiences that a token is for.
func (a *Authenticator) audiences(ctx context.Context, of []string) ([]string, error) {
	wanted := authn.AudiencesFrom(ctx)
	if wanted == nil {
		wanted = a.o.Audiences
	}
	if len(of) == 0 {
		of = a.o.Audiences
	}
	var common []string
	for _, w := range wanted {
		if slices.Contains(of, w) && !slices.Contains(common, w) {
			common = append(common, w)
		}
	}
	if common == nil {
		return nil, fmt.Errorf("token audiences %q is invalid for the target audiences %q", of, wanted)
	}
	return common, nil
}
