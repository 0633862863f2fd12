package clienttest

import (
	"github.com/keelson-dev/keelson/server/servertest"
	"k8s.io/client-go/rest"
)

// Config says how clients reach a server as its administrator: address, certificate authority, token and a Dial over the
// in-memory transport. They do not throttle themselves (QPS is -1), and work in a bubble of testing/synctest if all of them
// are made in it. The Config is the caller's own.
//
// Clients of one Config share a connection, unless its TLSClientConfig, Dial, Proxy or DisableCompression is changed: then
// they have one each, as the Config says. It keeps nothing of the server alive but the address, so that it may be held
// for as long as one likes after the server's Close.
func Config(s *servertest.Server) *rest.Config { return ConfigOf(s, s.Token) }

// ConfigOf is [Config] for the user that Server.AddUser gave a token.
func ConfigOf(s *servertest.Server, token string) *rest.Config {
	dial := s.Transport().DialContext // of the listener: s.DialContext would keep all of s for as long as there are clients
	return &rest.Config{
		Host:            s.URL,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.CA},
		Dial:            dial,
		WrapTransport:   shareTransports(dial),
		QPS:             -1,
	}
}
