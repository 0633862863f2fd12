package credentials

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"time"
)

// Options says where credentials are kept and for whom they are. The zero Options is valid.
type Options struct {
	// Dir is the directory of the files. It is created if its parent exists. Empty keeps nothing: the credentials
	// are new with every Open.
	Dir string
	// Host is the host the server listens on, an IP address or a DNS name, which the serving certificate is to
	// be valid for besides localhost, 127.0.0.1 and ::1. Empty and the wildcards 0.0.0.0 and :: add nothing.
	Host string
	// User is the administrator's name; empty is "admin".
	User string
	// Groups are the administrator's groups; nil is system:masters, who may do everything.
	Groups []string
	// Now is the clock; nil is time.Now. It is called concurrently.
	Now func() time.Time
	// Renewed is called when Bundle.Certificate has made a new serving certificate, with the end of that and the error of keeping
	// it in Dir. With an error the certificate is used all the same. nil is not called.
	Renewed func(until time.Time, err error)
}

func (o Options) withDefaults() Options {
	if o.User == "" {
		o.User = "admin"
	}
	if o.Groups == nil {
		o.Groups = []string{"system:masters"}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// path names a file in Dir; "" is one that is not kept.
func (o Options) path(name string) string {
	if o.Dir == "" {
		return ""
	}
	return filepath.Join(o.Dir, name)
}

// Bundle is a set of credentials that fit together. Its fields are not changed after Open, and its users must not change them.
type Bundle struct {
	// Serving is the server's certificate with its key, as Open has found or made it. A server that lasts shows Certificate.
	Serving tls.Certificate
	// ClientCAs verifies client certificates, and the server's.
	ClientCAs *x509.CertPool
	// CAPEM is the authority's certificate, in PEM.
	CAPEM []byte
	// ClientCertPEM and ClientKeyPEM are the administrator's certificate and key, in PEM.
	ClientCertPEM, ClientKeyPEM []byte
	// Token is the administrator's bearer token.
	Token string
	// User and Groups are whom the client certificate names, and whom the token stands for.
	User   string
	Groups []string

	serving *serving
}

// Open reads the credentials under o.Dir and makes what is missing or no longer valid. Errors name the file and
// what to do. Two processes that open the same directory at once get credentials of the same authority.
func Open(o Options) (*Bundle, error) {
	o = o.withDefaults()
	hosts, err := hostsOf(o.Host)
	if err != nil {
		return nil, err
	}
	if o.Dir != "" {
		if err := makeDir(o.Dir); err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
	}
	now := o.Now()
	ca, err := openAuthority(o.path("ca.pem"), now)
	if err != nil {
		return nil, err
	}
	shown := &serving{ca: ca, path: o.path("serving.pem"), want: servingProfile(hosts), now: o.Now, renewed: o.Renewed}
	server, err := ca.open(shown.path, shown.want, now)
	if err != nil {
		return nil, err
	}
	client, err := ca.open(o.path("client.pem"), clientProfile(o.User, o.Groups), now)
	if err != nil {
		return nil, err
	}
	token, err := openToken(o.path("token"))
	if err != nil {
		return nil, err
	}
	first := newServed(server, now)
	shown.current.Store(first)
	return &Bundle{
		Serving:       first.cert,
		ClientCAs:     ca.pool(),
		CAPEM:         bytes.Clone(ca.certPEM),
		ClientCertPEM: client.certPEM,
		ClientKeyPEM:  client.keyPEM,
		Token:         token,
		User:          o.User,
		Groups:        o.Groups,
		serving:       shown,
	}, nil
}

// TLSConfig returns a new configuration for the server, which shows Certificate. Clients are asked for a certificate but need none, and one
// that they show is not verified by the handshake: that is the authenticator's part, which can answer 401.
//
// It names no authorities to clients: many would then keep a certificate of another one to themselves, and be taken
// for anonymous instead of being told.
func (b *Bundle) TLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: b.Certificate,
		ClientAuth:     tls.RequestClientCert,
	}
}
