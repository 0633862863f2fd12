package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/options"
	"go.uber.org/zap"
)

// givesUsers reports whether flags define the users. If not, there is the administrator of --cert-dir.
func givesUsers(o *options.Options) bool { return o.TokenAuthFile != "" || o.ClientCAFile != "" }

// authenticatorOf returns an authenticator for the users of the flags.
func authenticatorOf(o *options.Options, log *zap.Logger) (authn.Authenticator, error) {
	var members []authn.Authenticator
	if o.ClientCAFile != "" {
		pool, err := readAuthorities("--client-ca-file", o.ClientCAFile)
		if err != nil {
			return nil, err
		}
		members = append(members, authn.X509(func() *x509.CertPool { return pool }))
	}
	if o.TokenAuthFile != "" {
		users, err := readTokens(o, log)
		if err != nil {
			return nil, err
		}
		members = append(members, authn.BearerToken(authn.StaticTokens(users)))
	}
	known := authn.AuthenticatedGroup(authn.Union(members...))
	switch {
	case !o.AnonymousAuth:
		return known, nil
	case slices.Contains(o.AuthorizationModes, "AlwaysAllow"):
		return anonymousHealth(known), nil
	}
	return authn.WithAnonymous(known), nil
}

// readTokens reads the users of the token file.
func readTokens(o *options.Options, log *zap.Logger) (map[string]authn.User, error) {
	path := o.TokenAuthFile
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--token-auth-file: %w", err)
	}
	defer func() { _ = file.Close() }()
	users, warnings, err := authn.ReadTokens(file)
	if unread := new(fs.PathError); errors.As(err, &unread) {
		return nil, fmt.Errorf("--token-auth-file %s: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("--token-auth-file %s: %w; a line is token,user,uid,\"group1,group2\"", path, err)
	}
	if slices.Contains(o.AuthorizationModes, "RBAC") && o.ClientCAFile == "" && !slices.ContainsFunc(slices.Collect(maps.Values(users)), isMaster) {
		log.Warn("no user of the token file is in the group system:masters: nobody can create the first roles and bindings", zap.String("file", path))
	}
	for _, w := range warnings {
		log.Warn("token file", zap.String("file", path), zap.String("warning", w))
	}
	return users, nil
}

func isMaster(u authn.User) bool { return u.InGroup(authn.MastersGroup) }

// anonymousHealth authenticates requests without credentials as system:anonymous, but only for the health paths. Other requests
// without credentials have no user: otherwise the mode AlwaysAllow would allow everything to everybody.
func anonymousHealth(a authn.Authenticator) authn.Authenticator {
	anonymous := authn.WithAnonymous(a)
	return authn.Func(func(r *http.Request) (*authn.Response, error) {
		for _, path := range healthPaths() {
			if r.URL.Path == path || strings.HasPrefix(r.URL.Path, path+"/") {
				return anonymous.Authenticate(r)
			}
		}
		return a.Authenticate(r)
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
