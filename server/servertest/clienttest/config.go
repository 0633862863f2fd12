package clienttest

import (
	"github.com/keelson-dev/keelson/server/servertest"
	"k8s.io/client-go/rest"
)

// Config returns a configuration for clients of a server as its administrator: address, certificate authority, token and a Dial
// for the in-memory transport. The clients do not throttle themselves (QPS is -1). They work in a bubble of testing/synctest if
// the server, the Config and the clients are made in it. The Config belongs to the caller.
//
// Clients of one Config share a connection. If its TLSClientConfig, Dial, Proxy or DisableCompression is changed, each client has
// a connection of its own, as the Config says. A Config references only the address of the server, so that it may be kept after
// the server's Close.
func Config(s *servertest.Server) *rest.Config { return ConfigOf(s, s.Token) }

// ConfigOf is [Config] for the user with this token from Server.AddUser.
func ConfigOf(s *servertest.Server, token string) *rest.Config {
	dial := s.Transport().DialContext // of the listener: s.DialContext would keep all of s as long as there are clients
	return &rest.Config{
		Host:            s.URL,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.CA},
		Dial:            dial,
		WrapTransport:   shareTransports(dial),
		QPS:             -1,
	}
}
