package server

import (
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"slices"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/credentials"
	"github.com/keelson-dev/keelson/server/request"
	"go.uber.org/zap"
)

// openCredentials makes or reads the server's credentials and, where the options name none, the authenticator.
func (s *Server) openCredentials() error {
	host, _, err := net.SplitHostPort(s.opts.Serving.Listen)
	if err != nil {
		return err
	}
	s.creds, err = credentials.Open(credentials.Options{Dir: s.opts.Serving.Credentials, Host: host})
	if err != nil {
		return err
	}
	p := s.policy
	if p.own == nil {
		p.own, p.anonymous = s.administrator(), true
	}
	s.authenticator = p
	if wrap := s.opts.Policy.WrapAuthenticator; wrap != nil {
		if s.authenticator = wrap(p); s.authenticator == nil {
			return errors.New("server: Policy.WrapAuthenticator returns nil: want an authenticator, such as the one that it is given")
		}
	}
	return nil
}

// unauthenticated logs why a request is answered with 401.
func (s *Server) unauthenticated(r *http.Request, err error) {
	if err == nil {
		return
	}
	s.opts.Observe.Logger.Info("unable to authenticate the request", zap.String("audit-id", request.AuditIDFrom(r.Context())), zap.Error(err))
}

// administrator knows the administrator of Credentials by certificate and by token.
func (s *Server) administrator() authn.Authenticator {
	// With all its groups from the start: a user that AuthenticatedGroup adds to is a new one for each request.
	admin := authn.User{Name: s.creds.User, Groups: append(slices.Clip(s.creds.Groups), authn.AuthenticatedAll)}
	return authn.AuthenticatedGroup(authn.Union(
		authn.X509(func() *x509.CertPool { return s.creds.ClientCAs }),
		authn.BearerToken(authn.StaticTokens(map[string]authn.User{s.creds.Token: admin})),
	))
}
