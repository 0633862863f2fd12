package server

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/credentials"
	"go.uber.org/zap"
)

// openCredentials makes or reads the server's credentials, and makes the server's own authenticators.
func (s *Server) openCredentials() error {
	host, _, err := net.SplitHostPort(s.opts.Serving.Listen)
	if err != nil {
		return err
	}
	s.creds, err = credentials.Open(credentials.Options{Dir: s.opts.Serving.Credentials, Host: host, Renewed: s.certificateRenewed})
	if err != nil {
		return err
	}
	if path := s.opts.Serving.Kubeconfig; path != "" {
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			return fmt.Errorf("server: Serving.Kubeconfig %q: there is no folder %s; make it, or name a file in another one", path, filepath.Dir(path))
		}
	}
	p := s.policy
	if users := s.opts.Policy.Users; len(users) > 0 {
		s.addTokens("Policy.Users", authn.StaticTokens(users))
	}
	if !s.opts.Policy.NoAdministrator {
		const administrator = "administrator"
		certificate := authn.AuthenticatedGroup(authn.X509(func() *x509.CertPool { return s.creds.ClientCAs }))
		p.callers = append(p.callers, authn.Named(administrator, certificate))
		s.addTokens(administrator, s.administratorToken())
	}
	p.callers = append(p.callers, authn.Func(p.authenticateByMembers))
	if own := s.opts.Policy.Authenticator; own != nil {
		p.callers = append(p.callers, authn.Named("Policy.Authenticator", own))
	}
	if p.anonymous { // a token that no authenticator reads, such as one of an issuer that was removed, is wrong
		p.callers = append(p.callers, authn.BearerToken(authn.UnionTokens()))
	}
	s.authenticator = p
	if wrap := s.opts.Policy.WrapAuthenticator; wrap != nil {
		if s.authenticator = wrap(p); s.authenticator == nil {
			return errors.New("server: Policy.WrapAuthenticator returns nil: want an authenticator, such as the one that it is given")
		}
	}
	p.whole = s.authenticator
	s.authenticator = loopbackUsers{s.authenticator}
	return nil
}

// certificateRenewed logs that the server has a new serving certificate.
func (s *Server) certificateRenewed(until time.Time, err error) {
	if err != nil {
		s.opts.Observe.Logger.Error("the serving certificate was renewed, but could not be kept", zap.Time("until", until), zap.Error(err))
		return
	}
	s.opts.Observe.Logger.Info("the serving certificate was renewed", zap.Time("until", until))
}

// addTokens adds users by their tokens, which are for all audiences of the server. The log has the name.
func (s *Server) addTokens(name string, tokens authn.TokenAuthenticator) {
	p := s.policy
	p.callers = append(p.callers, authn.Named(name, authn.AuthenticatedGroup(authn.BearerToken(tokens))))
	p.tokens = append(p.tokens, authn.ForAudiences(tokens, s.opts.Policy.Audiences...))
}

// administratorToken authenticates the administrator of Credentials by the token.
func (s *Server) administratorToken() authn.TokenAuthenticator {
	// The user has all its groups from the start: AuthenticatedGroup copies a user that it adds a group to, for each request.
	admin := authn.User{Name: s.creds.User, Groups: append(slices.Clip(s.creds.Groups), authn.AuthenticatedAll)}
	return authn.StaticTokens(map[string]authn.User{s.creds.Token: admin})
}
