package jwt

import (
	"errors"
	"maps"
	"os"
	"slices"
)

// Flags are the flags --oidc-* of kube-apiserver, for one issuer.
type Flags struct {
	IssuerURL string // --oidc-issuer-url; required
	ClientID  string // --oidc-client-id: the audience; required
	// CAFile is --oidc-ca-file: a file with the certificates that verify the issuer's server; "" are those of the system.
	CAFile string
	// UsernameClaim is --oidc-username-claim, whose default is sub.
	UsernameClaim string
	// UsernamePrefix is --oidc-username-prefix. "-" is no prefix. "" is the URL of the issuer and "#", or no prefix if the claim is
	// email.
	UsernamePrefix string
	GroupsClaim    string            // --oidc-groups-claim; "" gives no groups
	GroupsPrefix   string            // --oidc-groups-prefix
	RequiredClaims map[string]string // --oidc-required-claim
	// SigningAlgorithms are --oidc-signing-algs; nil is RS256.
	SigningAlgorithms []string
}

// OIDC returns the configuration that flags stand for. It reads the CA file. The error has the words of kube-apiserver. What is wrong
// with the values, New and Validate find.
func OIDC(f Flags) (*Configuration, error) {
	if f.IssuerURL == "" || f.ClientID == "" {
		return nil, errors.New("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")
	}
	e := Entry{Issuer: Issuer{URL: f.IssuerURL, Audiences: []string{f.ClientID}}, SigningAlgorithms: f.SigningAlgorithms}
	if len(e.SigningAlgorithms) == 0 {
		e.SigningAlgorithms = []string{"RS256"}
	}
	if f.CAFile != "" {
		certificates, err := os.ReadFile(f.CAFile)
		if err != nil {
			return nil, err
		}
		e.Issuer.CertificateAuthority = string(certificates)
	}
	prefix := f.UsernamePrefix
	switch {
	case prefix == "-", prefix == "" && f.UsernameClaim == "email":
		prefix = ""
	case prefix == "":
		prefix = f.IssuerURL + "#"
	}
	e.ClaimMappings.Username = PrefixedClaim{Claim: f.UsernameClaim, Prefix: &prefix}
	if f.GroupsClaim != "" {
		e.ClaimMappings.Groups = PrefixedClaim{Claim: f.GroupsClaim, Prefix: &f.GroupsPrefix}
	}
	for _, claim := range slices.Sorted(maps.Keys(f.RequiredClaims)) {
		e.ClaimValidationRules = append(e.ClaimValidationRules, ClaimRule{Claim: claim, RequiredValue: f.RequiredClaims[claim]})
	}
	return &Configuration{JWT: []Entry{e}}, nil
}
