package serviceaccount

import (
	"time"

	"github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/keelson-dev/keelson/authn"
	"k8s.io/apimachinery/pkg/types"
)

// LegacyIssuer is the issuer of tokens that are kept in Secrets.
const LegacyIssuer = "kubernetes/serviceaccount"

// Ref names an object in a token.
type Ref struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
}

// claims are the claims of a token. The fields are in the order of their names, as in tokens of kube-apiserver. The decoder of go-jose
// refuses an object that has a member twice, and tells upper from lower case in the names of members.
type claims struct {
	Audiences  audiences        `json:"aud,omitempty"`
	Expires    *jwt.NumericDate `json:"exp,omitempty"`
	Issued     *jwt.NumericDate `json:"iat,omitempty"`
	Issuer     string           `json:"iss,omitempty"`
	ID         string           `json:"jti,omitempty"`
	Kubernetes *bound           `json:"kubernetes.io,omitempty"`

	// The four claims of a legacy token.
	LegacyNamespace string    `json:"kubernetes.io/serviceaccount/namespace,omitempty"`
	LegacySecret    string    `json:"kubernetes.io/serviceaccount/secret.name,omitempty"`
	LegacyAccount   string    `json:"kubernetes.io/serviceaccount/service-account.name,omitempty"`
	LegacyUID       types.UID `json:"kubernetes.io/serviceaccount/service-account.uid,omitempty"`

	NotBefore *jwt.NumericDate `json:"nbf,omitempty"`
	Subject   string           `json:"sub,omitempty"`
}

// audiences are written as a list, and read as a list or a text (RFC 7519, 4.1.3).
type audiences []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audiences) UnmarshalJSON(text []byte) error { return (*jwt.Audience)(a).UnmarshalJSON(text) }

// bound names the account of a token, and the objects that the token is bound to.
type bound struct {
	MutatingWebhook   *Ref             `json:"mutatingwebhookconfiguration,omitempty"`
	Namespace         string           `json:"namespace,omitempty"`
	Node              *Ref             `json:"node,omitempty"`
	Pod               *Ref             `json:"pod,omitempty"`
	Secret            *Ref             `json:"secret,omitempty"`
	Account           Ref              `json:"serviceaccount"`
	ValidatingWebhook *Ref             `json:"validatingwebhookconfiguration,omitempty"`
	WarnAfter         *jwt.NumericDate `json:"warnafter,omitempty"`
}

// decode returns the claims of a payload, and its issuer even if the rest cannot be decoded.
func decode(payload []byte) (c claims, issuer string, err error) {
	if err = json.Unmarshal(payload, &c); err == nil {
		return c, c.Issuer, nil
	}
	var only struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(payload, &only) != nil {
		return claims{}, "", err
	}
	return claims{}, only.Issuer, err
}

// encode returns the payload of claims.
func (c claims) encode() ([]byte, error) { return json.Marshal(c) }

// seconds returns a time as a claim has it.
func seconds(t time.Time) *jwt.NumericDate { return jwt.NewNumericDate(t) }

// userName returns the name of the user of an account.
func userName(namespace, name string) string { return authn.ServiceAccount(namespace, name).Name }
