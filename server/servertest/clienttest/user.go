package clienttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/servertest"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"
)

// User is a user for [Environment.AddUser].
type User struct {
	// Name is the user's name.
	Name string
	// Groups are the user's groups. system:authenticated is added to them.
	Groups []string
}

// AuthenticatedUser is a user of an [Environment].
type AuthenticatedUser struct{ config *rest.Config }

// Config returns a configuration for clients as this user. Every call returns the same Config.
func (u *AuthenticatedUser) Config() *rest.Config { return u.config }

// KubeConfig returns the content of a kubeconfig file for this user, also for other processes.
func (u AuthenticatedUser) KubeConfig() ([]byte, error) {
	text, err := kubeConfig(u.config)
	if err != nil {
		return nil, fmt.Errorf("clienttest: %w", err)
	}
	return text, nil
}

// AddUser adds a user to the running Environment. baseConfig has further settings for the user's Config, such as a UserAgent, or
// is nil. The clients do not throttle themselves unless baseConfig says so.
//
// The authorizer of the server decides what the user may do. Without Policy.Authorizer, a member of the group system:masters may
// do everything, and others little more than discovery.
func (e *Environment) AddUser(user User, baseConfig *rest.Config) (*AuthenticatedUser, error) {
	switch {
	case e.useExistingCluster():
		return nil, errors.New("clienttest: AddUser: users of an existing cluster are made in that cluster")
	case e.Server == nil:
		return nil, errors.New("clienttest: AddUser: the Environment is not running; Start it first")
	case user.Name == "":
		return nil, errors.New("clienttest: AddUser: a user has no name; set User.Name")
	}
	token := e.Server.AddUser(authn.User{Name: user.Name, Groups: user.Groups})
	c, err := networkConfig(e.Server, token)
	if err != nil {
		return nil, fmt.Errorf("clienttest: AddUser: %w", err)
	}
	if baseConfig != nil {
		c = onto(c, baseConfig)
	}
	return &AuthenticatedUser{c}, nil
}

// networkConfig returns ConfigOf with the address for other processes. Clients of the Config itself connect in memory
// nevertheless.
func networkConfig(s *servertest.Server, token string) (*rest.Config, error) {
	url, err := s.Listen(context.Background())
	if err != nil {
		return nil, err
	}
	c := ConfigOf(s, token)
	c.Host = url
	return c, nil
}

// onto returns a copy of base with the connection to the server from c.
func onto(c, base *rest.Config) *rest.Config {
	out := rest.CopyConfig(base)
	out.Host, out.BearerToken, out.TLSClientConfig, out.Dial = c.Host, c.BearerToken, c.TLSClientConfig, c.Dial
	out.WrapTransport = transport.Wrappers(c.WrapTransport, base.WrapTransport)
	if out.QPS == 0 && out.RateLimiter == nil {
		out.QPS = c.QPS
	}
	return out
}

// kubeConfig returns a kubeconfig with the settings of c that such a file can have.
func kubeConfig(c *rest.Config) ([]byte, error) {
	const name = "clienttest"
	url, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{
		Server: url.String(), TLSServerName: c.ServerName, InsecureSkipTLSVerify: c.Insecure,
		CertificateAuthority: c.CAFile, CertificateAuthorityData: bytes.Clone(c.CAData),
	}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificate: c.CertFile, ClientCertificateData: bytes.Clone(c.CertData), ClientKey: c.KeyFile, ClientKeyData: bytes.Clone(c.KeyData),
		Token: c.BearerToken, TokenFile: c.BearerTokenFile, Username: c.Username, Password: c.Password,
		Impersonate: c.Impersonate.UserName, ImpersonateUID: c.Impersonate.UID, ImpersonateGroups: c.Impersonate.Groups, ImpersonateUserExtra: c.Impersonate.Extra,
		AuthProvider: c.AuthProvider, Exec: c.ExecProvider,
	}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	text, err := clientcmd.Write(*out)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return text, nil
}
