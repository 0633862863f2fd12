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
	return Authentication{Anonymous: true, Webhook: TokenWebhook{Version: "v1beta1", CacheTTL: 2 * time.Minute}}
}

// check refuses wrong values.
func (a *Authentication) check() error {
	return errors.Join(a.Proxies.check(), a.Webhook.check())
}

// complete sets Audiences, by default to the issuers of tokens of service accounts.
func (a *Authentication) complete(issuers []string) {
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
