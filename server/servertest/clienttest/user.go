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

// User is somebody whom [Environment.AddUser] adds.
type User struct {
	// Name is the user's name.
	Name string
	// Groups are the user's groups, to which system:authenticated is added.
	Groups []string
}

// AuthenticatedUser is a user known to an [Environment].
type AuthenticatedUser struct{ config *rest.Config }

// Config says how clients reach the server as this user. Every call returns the same.
func (u *AuthenticatedUser) Config() *rest.Config { return u.config }

// KubeConfig is the content of a kubeconfig file for this user, also for other processes.
func (u AuthenticatedUser) KubeConfig() ([]byte, error) {
	text, err := kubeConfig(u.config)
	if err != nil {
		return nil, fmt.Errorf("clienttest: %w", err)
	}
	return text, nil
}

// AddUser makes somebody known to the running Environment. baseConfig has settings that the user's Config is to have too, such
// as a UserAgent; nil has none. Where it says nothing of throttling there is none.
//
// What the user may do is the server's authorizer's to say: everything, in the group system:masters; otherwise, without
// Policy.Authorizer, hardly more than to discover what there is.
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

// networkConfig is ConfigOf with the address that other processes reach the server by. Who uses the Config dials in memory
// all the same.
func networkConfig(s *servertest.Server, token string) (*rest.Config, error) {
	url, err := s.Listen(context.Background())
	if err != nil {
		return nil, err
	}
	c := ConfigOf(s, token)
	c.Host = url
	return c, nil
}

// onto returns a copy of base that reaches the server of c as c does.
func onto(c, base *rest.Config) *rest.Config {
	out := rest.CopyConfig(base)
	out.Host, out.BearerToken, out.TLSClientConfig, out.Dial = c.Host, c.BearerToken, c.TLSClientConfig, c.Dial
	out.WrapTransport = transport.Wrappers(c.WrapTransport, base.WrapTransport)
	if out.QPS == 0 && out.RateLimiter == nil {
		out.QPS = c.QPS
	}
	return out
}

// kubeConfig writes a kubeconfig that says what c says, as far as such a file can.
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
