package main

import (
	"net/http"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/jwt"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/options"
)

// givesUsers reports whether flags define the users. If not, there is the administrator of --cert-dir. Bootstrap tokens alone define no
// user, because nobody could create their Secrets. A file of --authentication-config defines users, also if it has no issuers yet.
func givesUsers(a options.Authentication) bool {
	return a.ConfigFile != "" || a.OIDC.IssuerURL != "" || a.TokenFile != "" || a.ClientCAFile != "" || a.Proxies.CAFile != "" || a.Webhook.ConfigFile != ""
}

// anonymousOf returns the authenticator of the requests without a credential. file is what --authentication-config says about them: nil is
// nothing.
func anonymousOf(o *options.Options, file *jwt.AnonymousRequests) authn.Authenticator {
	accepted := o.Authentication.Anonymous
	if file != nil {
		accepted = file.Enabled
	}
	switch {
	case !accepted:
		return authn.Union()
	case file != nil && len(file.Conditions) > 0:
		paths, _ := jwt.Paths(file)
		return authn.Anonymous(paths...)
	case o.Authorization.ConfigFile == "" && slices.Contains(o.AuthorizationModes, "AlwaysAllow"):
		return anonymousHealth()
	}
	return authn.Anonymous()
}

// anonymousHealth authenticates requests without credentials as system:anonymous, but only for the health paths. Other requests
// without credentials have no user: otherwise the mode AlwaysAllow would allow everything to everybody.
func anonymousHealth() authn.Authenticator {
	anonymous := authn.Anonymous()
	return authn.Func(func(r *http.Request) (*authn.Response, error) {
		for _, path := range healthPaths() {
			if r.URL.Path == path || strings.HasPrefix(r.URL.Path, path+"/") {
				return anonymous.Authenticate(r)
			}
		}
		return nil, nil
	})
}

func healthPaths() []string { return []string{"/healthz", "/livez", "/readyz"} }

// firstAuthorizer returns the authorizer before those of the modes. With the mode RBAC it is nil, which means the server's own
// authorizer: it allows everything to system:masters, and to others, until the first roles are stored, what the roles
// system:public-info-viewer and system:discovery allow.
func firstAuthorizer(o *options.Options) authz.Authorizer {
	if slices.Contains(o.AuthorizationModes, "RBAC") {
		return nil
	}
	return authz.Masters()
}
