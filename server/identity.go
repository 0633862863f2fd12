package server

import (
	"crypto/x509"
	"net"
	"net/http"
	"slices"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/credentials"
	"github.com/keelson-dev/keelson/server/request"
	"go.uber.org/zap"
)

// openCredentials makes or reads the server's credentials and, where the options name none, the authenticator and
// the authorizer.
func (s *Server) openCredentials() error {
	host, _, err := net.SplitHostPort(s.opts.Listen)
	if err != nil {
		return err
	}
	s.creds, err = credentials.Open(credentials.Options{Dir: s.opts.Credentials, Host: host})
	if err != nil {
		return err
	}
	if s.authenticator = s.opts.Authenticator; s.authenticator == nil {
		s.authenticator = s.DefaultAuthenticator()
	}
	if s.authorizer = s.opts.Authorizer; s.authorizer == nil {
		s.authorizer = authz.Union(
			authz.Masters(),
			// What the roles system:public-info-viewer and system:discovery of Kubernetes allow.
			authz.AllowPaths("/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*", "/version", "/version/"),
			authz.ForGroup(authn.AuthenticatedAll, authz.AllowPaths("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")),
		)
	}
	return nil
}

// unauthenticated logs why a request is answered with 401.
func (s *Server) unauthenticated(r *http.Request, err error) {
	if err == nil {
		return
	}
	s.opts.Logger.Info("unable to authenticate the request", zap.String("audit-id", request.AuditIDFrom(r.Context())), zap.Error(err))
}

// DefaultAuthenticator is the authenticator that a nil Options.Authenticator stands for: it knows the administrator of Credentials by
// certificate and by token, and who shows neither as anonymous.
func (s *Server) DefaultAuthenticator() authn.Authenticator {
	// With all its groups from the start: a user that AuthenticatedGroup adds to is a new one for each request.
	admin := authn.User{Name: s.creds.User, Groups: append(slices.Clip(s.creds.Groups), authn.AuthenticatedAll)}
	return authn.WithAnonymous(authn.AuthenticatedGroup(authn.Union(
		authn.X509(func() *x509.CertPool { return s.creds.ClientCAs }),
		authn.BearerToken(authn.StaticTokens(map[string]authn.User{s.creds.Token: admin})),
	)))
}
