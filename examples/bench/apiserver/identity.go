package main

import (
	"fmt"

	"github.com/keelson-dev/keelson/examples/bench/internal/program"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
)

// newTokens returns an authenticator for the token of the user bench.
func newTokens(token string) authenticator.Request {
	tokens := tokenfile.New(map[string]*user.DefaultInfo{token: {Name: benchUser, Groups: []string{benchUser}}})
	return group.NewAuthenticatedGroupAdder(bearertoken.New(tokens))
}

// applyIdentities adds the authenticators of the flags for further identities, as extension servers have them. The configuration
// needs to know how it serves.
func applyIdentities(config *genericapiserver.Config, token string, id program.Identities) error {
	if id == (program.Identities{}) {
		return nil
	}
	delegating := options.NewDelegatingAuthenticationOptions()
	delegating.SkipInClusterLookup, delegating.RemoteKubeConfigFileOptional = true, id.Webhook == ""
	delegating.RemoteKubeConfigFile = id.Webhook
	delegating.ClientCert.ClientCA = id.ClientCA
	delegating.RequestHeader.ClientCAFile = id.ProxyCA
	if err := delegating.ApplyTo(&config.Authentication, config.SecureServing, config.OpenAPIConfig); err != nil {
		return fmt.Errorf("-client-ca, -proxy-ca and -webhook: %w", err)
	}
	if token != "" {
		config.Authentication.Authenticator = union.New(newTokens(token), config.Authentication.Authenticator)
	}
	return nil
}
