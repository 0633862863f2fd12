package options

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Authentication has the values of the flags about authentication.
type Authentication struct {
	// Anonymous makes a request without a credential one of system:anonymous. It is true by default.
	Anonymous bool
	// ClientCAFile is the file of the authorities of client certificates, and TokenFile the file of bearer tokens; "" is none.
	ClientCAFile, TokenFile string
	// BootstrapTokens makes the tokens in Secrets of the type bootstrap.kubernetes.io/token credentials.
	BootstrapTokens bool
	// Audiences are the names of this API in tokens: those of --api-audiences, or else those of --service-account-issuer.
	Audiences []string
	// Proxies says how proxies name users.
	Proxies Proxies
	// Webhook knows further tokens.
	Webhook TokenWebhook
	// ConfigFile is the file of issuers of JSON web tokens, and of anonymous requests; "" is none. AnonymousGiven is true if
	// --anonymous-auth was given, so that the file must not say anything about anonymous requests.
	ConfigFile     string
	AnonymousGiven bool
	// OIDC is one issuer of JSON web tokens. There is none if it has no IssuerURL.
	OIDC OIDC

	given map[string]flag
}

// OIDC has the values of the flags that begin with --oidc. The error of a wrong value is that of the issuer.
type OIDC struct {
	IssuerURL, ClientID           string
	CAFile                        string // the authorities of the issuer's server; "" are those of the system
	UsernameClaim, UsernamePrefix string // the claim is sub by default
	GroupsClaim, GroupsPrefix     string
	RequiredClaims                map[string]string
	SigningAlgorithms             []string // RS256 by default
}

// Proxies has the values of the flags that begin with --requestheader: those of authenticating proxies. If there is no CAFile, the
// others have no effect.
type Proxies struct {
	CAFile string // the authorities of the proxies' client certificates; "" is no proxy
	Names  []string
	// User, UID and Group are headers with the name, the UID and the groups of the user, and Extra the prefixes of headers with further
	// attributes. Without a header of User, no proxy can name a user.
	User, UID, Group, Extra []string
}

// TokenWebhook has the values of the flags that begin with --authentication-token-webhook. If there is no ConfigFile, the others are
// not checked.
type TokenWebhook struct {
	ConfigFile string // a kubeconfig; "" is no webhook
	Version    string // of TokenReview: v1beta1 by default, or v1
	// CacheTTL is how long answers are remembered: 2 minutes by default, and not at all if it is not positive.
	CacheTTL time.Duration
}

// defaultAuthentication returns the defaults of kube-apiserver.
func defaultAuthentication() Authentication {
	return Authentication{
		Anonymous: true, Webhook: TokenWebhook{Version: "v1beta1", CacheTTL: 2 * time.Minute},
		OIDC: OIDC{UsernameClaim: "sub", SigningAlgorithms: []string{"RS256"}},
	}
}

// check refuses wrong values.
func (a *Authentication) check() error {
	return errors.Join(a.Proxies.check(), a.Webhook.check(), a.checkIssuers())
}

// checkIssuers refuses two configurations of issuers, and half a one, in the words of kube-apiserver.
func (a *Authentication) checkIssuers() error {
	_, file := a.given["authentication-config"]
	oidc := false
	for name := range a.given {
		oidc = oidc || strings.HasPrefix(name, "oidc-")
	}
	switch {
	case file && oidc:
		return errors.New("authentication-config file and oidc-* flags are mutually exclusive")
	case oidc && (a.OIDC.IssuerURL == "" || a.OIDC.ClientID == ""):
		return errors.New("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")
	}
	return nil
}

// complete sets what depends on several flags, of which given are given. The default of Audiences are the issuers of tokens of service
// accounts.
func (a *Authentication) complete(given map[string]flag, issuers []string) {
	a.given = given
	_, a.AnonymousGiven = given["anonymous-auth"]
	if len(a.Audiences) == 0 {
		a.Audiences = issuers
	}
}

func (p *Proxies) check() error {
	var all []error
	for _, list := range []struct {
		flag   string
		values []string
	}{{"allowed-names", p.Names}, {"username-headers", p.User}, {"uid-headers", p.UID}, {"group-headers", p.Group}, {"extra-headers-prefix", p.Extra}} {
		for _, value := range list.values {
			if strings.TrimSpace(value) == "" {
				all = append(all, fmt.Errorf("--requestheader-%s %q has an empty value", list.flag, list.values))
				break
			}
		}
	}
	return errors.Join(all...)
}

func (w *TokenWebhook) check() error {
	versions := []string{"v1", "v1beta1"}
	if w.ConfigFile != "" && !slices.Contains(versions, w.Version) {
		return fmt.Errorf("--authentication-token-webhook-version: %q is no version of TokenReview: use %s", w.Version, strings.Join(versions, " or "))
	}
	return nil
}
