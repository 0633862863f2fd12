package provider

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	gojose "github.com/go-jose/go-jose/v4"

	"github.com/keelson-dev/keelson/authn/internal/jose"
)

// wellKnown is the path of the discovery document below an issuer.
const wellKnown = "/.well-known/openid-configuration"

// get fetches the keys from address, and finds address first if it is not known. After an error it is not known.
func (p *Provider) get(address *string) (keys []jose.Key, err error) {
	defer func() {
		if err != nil {
			*address = ""
		}
	}()
	if *address == "" {
		if *address, err = p.discover(); err != nil {
			return nil, fmt.Errorf("oidc: discovery of %q: %w", p.o.Issuer, err)
		}
	}
	text, err := Get(p.ended, p.o.Client, *address, "", p.o.Limits.Document)
	if err == nil {
		keys, err = readKeys(text, p.o.Limits)
	}
	if err != nil {
		return nil, fmt.Errorf("oidc: keys of %q: %w", p.o.Issuer, err)
	}
	return keys, nil
}

// discover returns the address of the keys.
func (p *Provider) discover() (string, error) {
	from := p.o.DiscoveryURL
	if from == "" {
		from = strings.TrimSuffix(p.o.Issuer, "/") + wellKnown
	}
	text, err := Get(p.ended, p.o.Client, from, "", p.o.Limits.Document)
	if err != nil {
		return "", err
	}
	var document struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return "", fmt.Errorf("the discovery document cannot be read: %w", err)
	}
	if document.Issuer != p.o.Issuer {
		return "", fmt.Errorf("the discovery document is that of the issuer %.200q", document.Issuer)
	}
	return document.Keys, nil
}

// Get returns what is at an https URL, which must be at most max bytes, after decompression. bearer is the token to send; "" is none.
// It is not sent to other hosts, to which the client is redirected.
func Get(ctx context.Context, c *http.Client, from, bearer string, max int64) ([]byte, error) {
	u, err := url.Parse(from)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%.200q is no https URL", from)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%.200q answers with the code %d", from, resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, max+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > max:
		return nil, fmt.Errorf("the answer of %.200q has more than %d bytes", from, max)
	}
	return text, nil
}

// readKeys returns the keys of a JSON Web Key Set that can verify signatures. Others are skipped, as RFC 7517, section 5, asks.
func readKeys(text []byte, l Limits) ([]jose.Key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("they are no JSON Web Key Set: %w", err)
	}
	if len(set.Keys) > l.Keys {
		return nil, fmt.Errorf("there are %d keys, at most %d are allowed", len(set.Keys), l.Keys)
	}
	keys := []jose.Key{}
	for _, one := range set.Keys {
		var key gojose.JSONWebKey
		if key.UnmarshalJSON(one) != nil {
			continue
		}
		switch public := key.Key.(type) {
		case *rsa.PublicKey:
			if public.N.BitLen() <= l.Modulus {
				keys = append(keys, jose.Key{ID: key.KeyID, Public: public})
			}
		case *ecdsa.PublicKey:
			keys = append(keys, jose.Key{ID: key.KeyID, Public: public})
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("there is none that can verify signatures")
	}
	return keys, nil
}

// hashOf returns a text that is the same for the same keys.
func hashOf(keys []jose.Key) string {
	sum := sha256.New()
	for _, k := range keys {
		der, _ := x509.MarshalPKIXPublicKey(k.Public) // fails for no key that readKeys returns
		one := sha256.Sum256(append([]byte(k.ID+"\x00"), der...))
		_, _ = sum.Write(one[:]) // never fails
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

func tlsConfig(roots *x509.CertPool) *tls.Config {
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
