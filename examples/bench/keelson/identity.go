package main

import (
	"crypto/x509"
	"fmt"
	"os"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/webhook"
	"github.com/keelson-dev/keelson/examples/bench/internal/program"
	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/server"
)

// tokens returns an authenticator for the token of the user bench.
func (c *config) tokens() authn.TokenAuthenticator {
	whose := authn.User{Name: user, Groups: []string{user, authn.AuthenticatedAll}}
	return authn.StaticTokens(map[string]authn.User{c.Token: whose})
}

// identify adds the authenticators of the flags for further identities. The server calls end when it has ended.
func (c *config) identify(opts *server.Options) (end func(), err error) {
	end = func() {}
	if c.Identities == (program.Identities{}) {
		return end, nil
	}
	var members []authn.Authenticator
	if c.ProxyCA != "" {
		roots, err := poolOf("-proxy-ca", c.ProxyCA)
		if err != nil {
			return nil, err
		}
		proxy, err := authn.AuthenticatingProxy(authn.StandardProxy(roots))
		if err != nil {
			return nil, err
		}
		members = append(members, proxy)
	}
	if c.ClientCA != "" {
		roots, err := poolOf("-client-ca", c.ClientCA)
		if err != nil {
			return nil, err
		}
		members = append(members, authn.X509(roots))
	}
	var tokens []authn.TokenAuthenticator
	if c.Token != "" {
		tokens = append(tokens, c.tokens())
	}
	if c.Webhook != "" {
		cfg, err := client.Kubeconfig(c.Webhook, "")
		if err != nil {
			return nil, fmt.Errorf("-webhook: %w", err)
		}
		reviewed, err := webhook.New(cfg, webhook.Options{})
		if err != nil {
			return nil, fmt.Errorf("-webhook: %w", err)
		}
		tokens, end = append(tokens, reviewed), reviewed.Close
	}
	members = append(members, authn.BearerToken(authn.CacheTokens(authn.UnionTokens(tokens...), authn.CacheOptions{})))
	opts.Policy.Authenticator = authn.WithAnonymous(authn.AuthenticatedGroup(authn.Union(members...)))
	return end, nil
}

// poolOf returns the authorities of a file.
func poolOf(flag, path string) (func() *x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: %s has no certificate", flag, path)
	}
	return func() *x509.CertPool { return pool }, nil
}
