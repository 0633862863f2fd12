package credentials

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"time"
)

// Options are the options of Open: the directory of the credentials, the host of the server, and the administrator. The zero
// Options is valid.
type Options struct {
	// Dir is the directory of the files. It is created if its parent exists. "" keeps no files: each Open makes new credentials.
	Dir string
	// Host is the host that the server listens on, an IP address or a DNS name. The serving certificate is valid for it, and for
	// localhost, 127.0.0.1 and ::1. "" and the wildcards 0.0.0.0 and :: add nothing.
	Host string
	// User is the administrator's name; "" is "admin".
	User string
	// Groups are the administrator's groups; nil is system:masters, which may do everything.
	Groups []string
	// Now is the clock; nil is time.Now. It is called concurrently.
	Now func() time.Time
	// Renewed is called when Bundle.Certificate has made a new serving certificate, with the time at which the new certificate
	// expires, and the error of writing it to Dir. The certificate is used even if it could not be written. A nil Renewed is not
	// called.
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

// path returns the name of a file in Dir, or "" if no files are kept.
func (o Options) path(name string) string {
	if o.Dir == "" {
		return ""
	}
	return filepath.Join(o.Dir, name)
}

// Bundle is a set of credentials that belong together. Its fields do not change after Open, and must not be changed.
type Bundle struct {
	// Serving is the server's certificate with its key, as Open has read or made it. Servers that run for long should use
	// Certificate instead.
	Serving tls.Certificate
	// ClientCAs has one certificate: that of the authority, which has signed the client certificate and the serving certificate.
	ClientCAs *x509.CertPool
	// CAPEM is the authority's certificate in PEM.
	CAPEM []byte
	// ClientCertPEM and ClientKeyPEM are the administrator's certificate and key in PEM.
	ClientCertPEM, ClientKeyPEM []byte
	// Token is the administrator's bearer token.
	Token string
	// User is the administrator's name, for the client certificate and the token.
	User string
	// Groups are the administrator's groups, for the client certificate and the token.
	Groups []string

	serving *serving
}

// Open reads the credentials in o.Dir, and makes those that are missing or no longer valid. Errors name the file and what to do.
// Two processes that open the same directory at once get credentials of the same authority.
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

// TLSConfig returns a new configuration for the server, which uses Certificate. The server requests a certificate from clients,
// but does not require one. The handshake does not verify the client's certificate: the authenticator does, and can answer 401.
//
// The request names no authorities. Otherwise many clients with a certificate of another authority would not send it, and would
// be treated as anonymous instead of getting an error.
func (b *Bundle) TLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: b.Certificate,
		ClientAuth:     tls.RequestClientCert,
	}
}
