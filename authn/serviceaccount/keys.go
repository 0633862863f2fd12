package serviceaccount

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-jose/go-jose/v4"
)

// Keys are the keys that sign and verify tokens. They can be replaced while they are in use. All methods may be called concurrently.
type Keys struct{ now atomic.Pointer[keySet] }

// MaxKeys is the greatest number of keys of a Keys. A token without the id of a key costs one attempt for each key.
const MaxKeys = 64

// errNoSigner is returned by Issuer if there is no key that signs.
var errNoSigner = errors.New("service accounts: there is no key that signs tokens")

// keySet is immutable.
type keySet struct {
	signer jose.Signer // nil: no tokens can be issued
	public []publicKey // in the order in which they were given, each once
	byID   map[string]crypto.PublicKey
}

type publicKey struct {
	key crypto.PublicKey
	id  string
	alg jose.SignatureAlgorithm
}

// NewKeys returns keys of which signer signs, and verify and the public key of signer verify. A nil signer issues no tokens.
func NewKeys(signer crypto.Signer, verify ...crypto.PublicKey) (*Keys, error) {
	k := &Keys{}
	return k, k.Replace(signer, verify...)
}

// Replace replaces all keys in one step. A token of a former key is verified as long as its public key is in verify. So to rotate a key,
// call Replace with a new signer and the former public keys. After an error the keys are as before. Keys are RSA keys of at least
// 2,048 bits, or ECDSA keys of the curves P-256, P-384 and P-521.
func (k *Keys) Replace(signer crypto.Signer, verify ...crypto.PublicKey) error {
	next := &keySet{byID: map[string]crypto.PublicKey{}}
	for _, key := range verify {
		if _, err := next.add(key); err != nil {
			return err
		}
	}
	if signer != nil {
		own, err := next.add(signer.Public())
		if err != nil {
			return err
		}
		key := jose.SigningKey{Algorithm: own.alg, Key: jose.JSONWebKey{Key: signer, KeyID: own.id}}
		if next.signer, err = jose.NewSigner(key, nil); err != nil {
			return fmt.Errorf("service accounts: the key that signs: %w", err)
		}
	}
	switch n := len(next.public); {
	case n == 0:
		return errors.New("service accounts: want a key that signs, or a public key that verifies tokens")
	case n > MaxKeys:
		return fmt.Errorf("service accounts: %d keys: want at most %d", n, MaxKeys)
	}
	k.now.Store(next)
	return nil
}

// add adds a public key, unless it is there already.
func (s *keySet) add(key crypto.PublicKey) (publicKey, error) {
	alg, err := algorithmOf(key)
	if err != nil {
		return publicKey{}, err
	}
	id, err := KeyID(key)
	if err != nil {
		return publicKey{}, err
	}
	one := publicKey{key, id, alg}
	if s.byID[id] == nil {
		s.byID[id] = key
		s.public = append(s.public, one)
	}
	return one, nil
}

// algorithmOf returns the algorithm of tokens that a key signs.
func algorithmOf(key crypto.PublicKey) (jose.SignatureAlgorithm, error) {
	const leastBits = 2048
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < leastBits {
			return "", fmt.Errorf("service accounts: an RSA key has %d bits: want at least %d", bits, leastBits)
		}
		return jose.RS256, nil
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256():
			return jose.ES256, nil
		case elliptic.P384():
			return jose.ES384, nil
		case elliptic.P521():
			return jose.ES512, nil
		}
		return "", errors.New("service accounts: the curve of an ECDSA key must be P-256, P-384 or P-521")
	}
	return "", fmt.Errorf("service accounts: a key is a %T: want an RSA or ECDSA key", key)
}

// KeyID returns the id of a public key in the headers of tokens: the hash SHA-256 of its DER form, in base64url.
func KeyID(key crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("service accounts: %w", err)
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// algorithms returns the algorithms of tokens that are verified. None of them uses a secret that is known to those who verify.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512}
}

var (
	errNoKey     = errors.New("invalid signature, no keys found")
	errSignature = errors.New("the signature is not of a key of this server")
)

// verify returns nil if one of the keys has signed a token: that of the id in the header, or any if the header has none.
func (s *keySet) verify(token *jose.JSONWebSignature) error {
	if id := token.Signatures[0].Header.KeyID; id != "" {
		key := s.byID[id]
		if key == nil {
			return errNoKey
		}
		if _, err := token.Verify(key); err != nil {
			return errSignature
		}
		return nil
	}
	for _, one := range s.public {
		if _, err := token.Verify(one.key); err == nil {
			return nil
		}
	}
	return errSignature
}

// ParseSigner returns the private key in PEM: of the form of PKCS 1, PKCS 8 or SEC 1. Other blocks are left out.
func ParseSigner(text []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var key any
		var err error
		switch block.Type {
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("a private key: %w", err)
		}
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
		return nil, fmt.Errorf("a private key is a %T: want an RSA or ECDSA key", key)
	}
	return nil, errors.New("there is no private key in PEM")
}

// ParsePublic returns all keys in PEM, in their order: public keys, those of certificates, and those of private keys.
func ParsePublic(text []byte) ([]crypto.PublicKey, error) {
	var keys []crypto.PublicKey
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var key crypto.PublicKey
		var err error
		switch block.Type {
		case "PUBLIC KEY":
			key, err = x509.ParsePKIXPublicKey(block.Bytes)
		case "RSA PUBLIC KEY":
			key, err = x509.ParsePKCS1PublicKey(block.Bytes)
		case "CERTIFICATE":
			var cert *x509.Certificate
			if cert, err = x509.ParseCertificate(block.Bytes); err == nil {
				key = cert.PublicKey
			}
		case "RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY":
			var signer crypto.Signer
			if signer, err = ParseSigner(pem.EncodeToMemory(block)); err == nil {
				key = signer.Public()
			}
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("a block %s: %w", block.Type, err)
		}
		keys = append(keys, key)
	}
	if keys == nil {
		return nil, errors.New("there is no key in PEM")
	}
	return keys, nil
}
