package main

import (
	"net/http"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/options"
	"go.uber.org/zap"
)

// givesUsers reports whether flags define the users. If not, there is the administrator of --cert-dir. Bootstrap tokens alone define no
// user, because nobody could create their Secrets.
func givesUsers(a options.Authentication) bool {
	return a.TokenFile != "" || a.ClientCAFile != "" || a.Proxies.CAFile != "" || a.Webhook.ConfigFile != ""
}

// anonymousOf returns the authenticator of the requests without a credential.
func anonymousOf(o *options.Options) authn.Authenticator {
	switch {
	case !o.Authentication.Anonymous:
		return authn.Union()
	case slices.Contains(o.AuthorizationModes, "AlwaysAllow"):
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
// authorizer: it allows everything to system:masters, and to others what the roles system:public-info-viewer and system:discovery
// of a new cluster allow, which are not stored yet.
func firstAuthorizer(o *options.Options) authz.Authorizer {
	if slices.Contains(o.AuthorizationModes, "RBAC") {
		return nil
	}
	return authz.Masters()
}

// authorizerOf returns an extension that adds the authorizer of a mode after the existing ones. It has the name that
// kube-apiserver uses; reasons of refusals begin with it.
func authorizerOf(mode string, log *zap.Logger) server.Extension {
	switch mode {
	case "AlwaysAllow":
		return server.ExtensionFunc(func(h *server.Host) error { return h.Authorize("alwaysallow", authz.AlwaysAllow()) })
	case "AlwaysDeny":
		return server.ExtensionFunc(func(h *server.Host) error { return h.Authorize("alwaysdeny", authz.AlwaysDeny()) })
	}
	return rbac.New(rbac.Options{Logger: log}) // package options has refused unknown modes
}
