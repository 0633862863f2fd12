package options

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// ServiceAccounts has the values of the flags that begin with --service-account, for accounts.Options of package server/builtin/accounts.
type ServiceAccounts struct {
	// Issuers are the issuers of tokens; none is that of accounts.DefaultIssuer. The first one is that of new tokens.
	Issuers []string
	// SigningKeyFile has the key that signs; "" is one that the program keeps. KeyFiles have further keys that verify.
	SigningKeyFile string
	KeyFiles       []string
	// KeysURI is the URL of the keys in the discovery document; "" is that of the server.
	KeysURI string
	// MaxExpiration is how long a token can be requested for; 0 is 2^32 seconds.
	MaxExpiration time.Duration
	// Extend makes tokens for Pods valid for a year; it is true by default.
	Extend bool
	// Lookup looks at the Secret and the account of a token that is kept in a Secret; it is true by default.
	Lookup bool
}

// check refuses wrong values.
func (a *ServiceAccounts) check() error {
	const least, most = time.Hour, (1 << 32) * time.Second
	var all []error
	if slices.Contains(a.Issuers, "") {
		all = append(all, errors.New("--service-account-issuer should not be an empty string"))
	}
	if d := a.MaxExpiration; d != 0 && (d < least || d > most) {
		all = append(all, fmt.Errorf("--service-account-max-token-expiration %s must be between 1 hour and 2^32 seconds", d))
	}
	if a.KeysURI != "" {
		switch u, err := url.Parse(a.KeysURI); {
		case err != nil:
			all = append(all, fmt.Errorf("--service-account-jwks-uri must be a valid URL: %w", err))
		case u.Scheme != "https":
			all = append(all, fmt.Errorf("--service-account-jwks-uri requires https scheme, parsed as: %s", u))
		}
	}
	return errors.Join(all...)
}
