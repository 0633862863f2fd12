// Package jose reads and verifies signed JSON Web Tokens (RFC 7515, 7519) for the authenticators of tokens. It adds to
// github.com/go-jose/go-jose, which has the cryptography, what these authenticators have in common: a bound on the size, no opinion
// of a token before its issuer is known, a list of algorithms that is always stated, and refusal of what parsers could read in two
// ways.
//
//	token, ok := jose.Read(text, 0)
//	if !ok || token.Issuer() != "https://issuer.example" {
//		return nil, nil // no opinion
//	}
//	verified, err := token.Check([]string{"RS256"})
//	claims, err := verified.Verify(keys)
//
// # What is refused
//
//   - Algorithms other than the listed ones. [Algorithms] has all that may be listed: signatures with private keys. So "none" is
//     always refused, and so are HMACs, for which a public key could be taken as the secret.
//   - Header parameters that must be understood ("crit", with "b64" among them).
//   - A header or claims with a key twice.
//   - Keys that come with the token ("jwk", "jku", "x5c", "x5u"): they are not looked at.
//
// The package reads no clock: the times in the claims are the caller's affair.
package jose

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	kjson "sigs.k8s.io/json"
)

// MaxToken is the default of the maximum size of a token, in bytes.
const MaxToken = 64 << 10

// Errors of Check and Verify.
var (
	// ErrMalformed means that a token is no JWT in the compact form, or has something that is refused.
	ErrMalformed = errors.New("malformed token")
	// ErrAlgorithm means that a token is signed with an algorithm that is not allowed.
	ErrAlgorithm = errors.New("the signing algorithm of the token is not allowed")
	// ErrSignature means that no key verifies the signature.
	ErrSignature = errors.New("no key verifies the signature of the token")
)

// Algorithms returns the names of all algorithms that may be allowed, in order.
func Algorithms() []string {
	return []string{"ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"}
}

// Token is a token of which nothing is verified. The zero Token has no issuer. A Token is not changed after Read.
type Token struct {
	text   string
	issuer string
}

// Read reads the issuer of a token. ok is false if text has more than max bytes (0 means MaxToken), or if it is not of the form of a
// signed JWT whose claims have an issuer. Only the form of the claims has been looked at.
func Read(text string, max int) (token Token, ok bool) {
	if max == 0 {
		max = MaxToken
	}
	if len(text) > max || strings.Count(text, ".") != 2 {
		return Token{}, false
	}
	_, rest, _ := strings.Cut(text, ".")
	part, _, _ := strings.Cut(rest, ".")
	payload, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return Token{}, false
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(payload, &claims); err != nil || claims.Issuer == "" {
		return Token{}, false
	}
	return Token{text, claims.Issuer}, true
}

// Issuer returns the issuer, which the token itself states.
func (t Token) Issuer() string { return t.issuer }

// Signed is a token whose header is allowed. Its signature is not verified.
type Signed struct {
	signed *jose.JSONWebSignature
	key    string
	alg    string
}

// Check checks the header. The algorithm has to be one of allowed, which has names of Algorithms. The error is ErrMalformed or
// ErrAlgorithm, with details.
func (t Token) Check(allowed []string) (*Signed, error) {
	all := make([]jose.SignatureAlgorithm, 0, len(allowed))
	for _, name := range allowed {
		if slices.Contains(Algorithms(), name) {
			all = append(all, jose.SignatureAlgorithm(name))
		}
	}
	if len(all) == 0 {
		return nil, ErrAlgorithm
	}
	signed, err := jose.ParseSignedCompact(t.text, all)
	var unexpected *jose.ErrUnexpectedSignatureAlgorithm
	switch {
	case errors.As(err, &unexpected):
		return nil, fmt.Errorf("%w: %.20q", ErrAlgorithm, string(unexpected.Got))
	case err != nil:
		return nil, fmt.Errorf("%w: %.200s", ErrMalformed, err) // it may quote what nobody signed
	case len(signed.Signatures) != 1:
		return nil, ErrMalformed
	}
	header := signed.Signatures[0].Protected
	for _, refused := range []jose.HeaderKey{"crit", "b64"} {
		if _, has := header.ExtraHeaders[refused]; has {
			return nil, fmt.Errorf("%w: its header has %q", ErrMalformed, string(refused))
		}
	}
	return &Signed{signed, header.KeyID, header.Algorithm}, nil
}

// KeyID returns the id of the key that the token names, or "" if it names none. It may be of any form.
func (s *Signed) KeyID() string { return s.key }

// Key is a public key that verifies signatures.
type Key struct {
	ID        string           // what tokens name; may be empty
	Algorithm string           // the only algorithm for which the key may be used; "" is all that fit the key
	Public    crypto.PublicKey // *rsa.PublicKey or *ecdsa.PublicKey; others verify nothing
}

// Verify verifies the signature with those keys that the token may mean: the keys with the id that the token names, or all keys if it
// names none. It returns the claims, whose form it has checked: an object in JSON without duplicate keys. The error is ErrSignature
// if there is no such key or none of them fits, and ErrMalformed if the claims are not of this form.
func (s *Signed) Verify(keys []Key) (claims []byte, err error) {
	for _, key := range keys {
		if s.key != "" && key.ID != s.key || key.Algorithm != "" && key.Algorithm != s.alg {
			continue
		}
		if payload, err := s.signed.Verify(key.Public); err == nil {
			return payload, unambiguous(payload)
		}
	}
	return nil, ErrSignature
}

// unambiguous returns an error if a text is not an object in JSON whose keys are unique at all levels.
func unambiguous(text []byte) error {
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		return fmt.Errorf("%w: its claims are no object in JSON", ErrMalformed)
	}
	var all map[string]any
	problems, err := kjson.UnmarshalStrict(text, &all)
	if err == nil {
		err = errors.Join(problems...)
	}
	if err != nil {
		return fmt.Errorf("%w: %.200s", ErrMalformed, err)
	}
	return nil
}
