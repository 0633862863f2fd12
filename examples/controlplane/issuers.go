package main

import (
	"context"
	"fmt"
	"os"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/jwt"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/accounts"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/options"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// issuers authenticates the JSON web tokens of the issuers of --authentication-config, which is used again when it changes, or of the
// flags --oidc-*.
func issuers(o *options.Options) server.Extension {
	return server.ExtensionFunc(func(h *server.Host) error {
		a := o.Authentication
		if a.ConfigFile == "" && a.OIDC.IssuerURL == "" {
			return nil
		}
		told, err := metrics.NewIssuers(h.Metrics())
		if err != nil {
			return err
		}
		h.OnClose(told.Close)
		opts := jwt.Options{ReservedIssuers: accountIssuers(o), Hooks: jwt.Hooks{Authenticated: told.Authenticated, Fetched: told.Fetched}}
		use := func(tokens *jwt.Authenticator) error { return h.Authenticate(authn.OIDC, ofTokens(o, tokens)) }
		if a.ConfigFile != "" {
			return issuersOfFile(h, a.ConfigFile, jwt.NewFile(use, opts), told)
		}
		return issuerOfFlags(h, a.OIDC, use, opts)
	})
}

// accountIssuers returns the issuers of tokens of service accounts, which no other issuer may have.
func accountIssuers(o *options.Options) []string {
	if len(o.ServiceAccounts.Issuers) == 0 {
		return []string{accounts.DefaultIssuer}
	}
	return o.ServiceAccounts.Issuers
}

// issuersOfFile follows the file of --authentication-config.
func issuersOfFile(h *server.Host, path string, file *jwt.File, told *metrics.Issuers) error {
	h.OnClose(file.Close)
	h.Go(func(ctx context.Context) { // ends the use of a changed file, which may wait for its issuers
		<-ctx.Done()
		file.Close()
	})
	return h.Follow(server.ConfigFile{Name: "authentication", Path: path, Every: lookEvery, MaxBytes: jwt.MaxFile, Use: func(content []byte) error {
		err := file.Use(content)
		if err == nil {
			told.Configured(content)
		}
		return err
	}})
}

// issuerOfFlags uses the issuer of the flags --oidc-*.
func issuerOfFlags(h *server.Host, o options.OIDC, use func(*jwt.Authenticator) error, opts jwt.Options) error {
	conf, err := jwt.OIDC(jwt.Flags{
		IssuerURL: o.IssuerURL, ClientID: o.ClientID, CAFile: o.CAFile, UsernameClaim: o.UsernameClaim, UsernamePrefix: o.UsernamePrefix,
		GroupsClaim: o.GroupsClaim, GroupsPrefix: o.GroupsPrefix, RequiredClaims: o.RequiredClaims, SigningAlgorithms: o.SigningAlgorithms,
	})
	if err != nil {
		return err
	}
	tokens, err := jwt.New(conf, opts)
	if err != nil {
		return err
	}
	h.OnClose(tokens.Close)
	return use(tokens)
}

// anonymousOfFile returns what --authentication-config says about anonymous requests: nil if there is no such file, or if it says
// nothing. The file cannot change it while the server runs.
func anonymousOfFile(a options.Authentication) (*jwt.AnonymousRequests, error) {
	if a.ConfigFile == "" {
		return nil, nil
	}
	content, err := os.ReadFile(a.ConfigFile)
	if err != nil {
		return nil, fmt.Errorf("failed to load authentication configuration from file %q: %w", a.ConfigFile, err)
	}
	conf, err := jwt.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("failed to load authentication configuration from file %q: %w", a.ConfigFile, err)
	}
	if conf.Anonymous != nil && a.AnonymousGiven {
		return nil, field.Forbidden(field.NewPath("anonymous"), "--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file")
	}
	return conf.Anonymous, nil
}
