package serviceaccount

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Issuer issues tokens. All methods may be called concurrently.
type Issuer struct {
	// Keys have the key that signs.
	Keys *Keys
	// URL is the issuer of the tokens, the first of those that the authenticator accepts.
	URL string
}

// Grant is what a token says.
type Grant struct {
	// Namespace and Account name the service account.
	Namespace string
	Account   Ref
	// Pod, Node and Secret are the objects that the token is bound to; nil is none. The Node of a token with a Pod is the one that the
	// Pod runs on, and no condition.
	Pod, Node, Secret *Ref
	// Audiences are those whom the token is for. There must be at least one.
	Audiences []string
	// Begin is the time from which the token is valid.
	Begin time.Time
	// Lifetime is how long the token is valid, in whole seconds.
	Lifetime time.Duration
	// WarnAfter is how long the token can be used without a remark in the audit event; 0 is as long as it is valid.
	WarnAfter time.Duration
}

// ErrTooLarge is returned for a token that would be larger than [MaxToken].
var ErrTooLarge = errors.New("the token would be larger than tokens may be")

// Issue returns a token, and its id, the claim jti.
func (i Issuer) Issue(g Grant) (token, id string, err error) {
	id = uuid.NewString()
	c := claims{
		Audiences: g.Audiences, Issuer: i.URL, ID: id, Subject: userName(g.Namespace, g.Account.Name),
		Expires: seconds(g.Begin.Add(g.Lifetime)), Issued: seconds(g.Begin), NotBefore: seconds(g.Begin),
		Kubernetes: &bound{Namespace: g.Namespace, Account: g.Account, Pod: g.Pod, Node: g.Node, Secret: g.Secret},
	}
	if g.WarnAfter > 0 {
		c.Kubernetes.WarnAfter = seconds(g.Begin.Add(g.WarnAfter))
	}
	token, err = i.Keys.sign(c)
	return token, id, err
}

// IssueLegacy returns the token that is kept in a Secret. It does not expire: it ends with the Secret or the account.
func (i Issuer) IssueLegacy(namespace string, account Ref, secret string) (string, error) {
	return i.Keys.sign(claims{
		Issuer: LegacyIssuer, Subject: userName(namespace, account.Name),
		LegacyNamespace: namespace, LegacySecret: secret, LegacyAccount: account.Name, LegacyUID: account.UID,
	})
}

// sign returns the token of claims.
func (k *Keys) sign(c claims) (string, error) {
	signer := k.now.Load().signer
	if signer == nil {
		return "", errNoSigner
	}
	payload, err := c.encode()
	if err != nil {
		return "", fmt.Errorf("service accounts: %w", err)
	}
	if len(payload) > MaxToken {
		return "", ErrTooLarge
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("service accounts: %w", err)
	}
	token, err := signed.CompactSerialize()
	if err == nil && len(token) > MaxToken {
		err = ErrTooLarge
	}
	return token, err
}
