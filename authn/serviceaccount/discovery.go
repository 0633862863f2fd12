package serviceaccount

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// Paths of the documents below the address of a server, and the media type of the keys.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeysPath          = "/openid/v1/jwks"
	KeysMediaType     = "application/jwk-set+json"
)

// configuration is the discovery document of an issuer, with the fields that kube-apiserver has in it.
type configuration struct {
	Issuer        string   `json:"issuer"`
	KeysURI       string   `json:"jwks_uri"`
	ResponseTypes []string `json:"response_types_supported"`
	SubjectTypes  []string `json:"subject_types_supported"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
}

// Configuration returns the discovery document of an issuer whose keys are at keysURI:
// https://openid.net/specs/openid-connect-discovery-1_0.html.
func (k *Keys) Configuration(issuer, keysURI string) ([]byte, error) {
	var algorithms []string
	for _, one := range k.now.Load().public {
		algorithms = append(algorithms, string(one.alg))
	}
	slices.Sort(algorithms)
	return json.Marshal(configuration{issuer, keysURI, []string{"id_token"}, []string{"public"}, slices.Compact(algorithms)})
}

// Published returns the public keys, as others need them to verify tokens.
func (k *Keys) Published() ([]byte, error) {
	var set jose.JSONWebKeySet
	for _, one := range k.now.Load().public {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: one.key, KeyID: one.id, Algorithm: string(one.alg), Use: "sig"})
	}
	return json.Marshal(set)
}

// CheckIssuer returns an error if a text cannot be an issuer with a discovery document: a URL with https, without a query or fragment.
func CheckIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case err != nil:
		return fmt.Errorf("issuer %q: %w", issuer, err)
	case u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("issuer %q: want a URL with https", issuer)
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return fmt.Errorf("issuer %q: want a URL without a query and a fragment", issuer)
	}
	return nil
}
