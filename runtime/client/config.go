package client

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Config has the address of a server, the authorities to trust, and the credentials of the client. [Kubeconfig] and [InCluster]
// make a Config from files; a program may also fill in a Config itself. The results of String and of encoding as JSON contain no
// secrets.
type Config struct {
	// Server is the URL: http or https, a host, and perhaps a port and a path, but no user, query or fragment. API paths are
	// below its path. A Request without a path is sent to this URL itself, as webhooks need it.
	Server string
	// CA has PEM certificates of the authorities that may issue the server's certificate. If it is empty, the authorities of the
	// system are trusted. It is not read again from the file that it came from.
	CA []byte
	// ServerName is the name in the server's certificate, and is sent as SNI; "" means the host of Server.
	ServerName string
	// Insecure accepts any certificate of the server. An attacker between client and server can then read and change everything.
	// It must not be combined with CA.
	Insecure bool
	// Proxy returns the proxy for a request, or nil. If Proxy is nil, http.ProxyFromEnvironment is used, which has no proxy for
	// loopback addresses.
	Proxy func(*http.Request) (*url.URL, error) `json:"-"`
	// DisableCompression makes the client request uncompressed answers.
	DisableCompression bool

	// Cert and Key are the client certificate and its key in PEM. CertFile and KeyFile name files instead; if they have changed,
	// they are read again for a new connection. Set both Cert and Key, or both CertFile and KeyFile, or none.
	Cert              []byte
	Key               []byte `json:"-"`
	CertFile, KeyFile string
	// Token is a bearer token. TokenFile names a file with a token, which is read again after a minute, and at once if the server
	// answers 401. The token in the file is preferred to Token, which is used if the file cannot be read.
	Token     string `json:"-"`
	TokenFile string
	// Username and Password are for basic authentication. They must not be combined with Token and TokenFile.
	Username string
	Password string `json:"-"`
	// Impersonate is the user that the client acts as. The zero Impersonation is none.
	Impersonate Impersonation
}

// Impersonation is another user that a client acts as. UID, Groups and Extra require User.
type Impersonation struct {
	User   string              // the name of the user
	UID    string              // the UID of the user
	Groups []string            // the groups of the user
	Extra  map[string][]string // the extra attributes of the user
}

// String returns the address of the server and the kind of the credentials, without secrets.
func (c Config) String() string {
	var who []string
	add := func(set bool, what string) {
		if set {
			who = append(who, what)
		}
	}
	add(len(c.Cert) > 0, "a client certificate")
	add(c.CertFile != "", "the client certificate "+c.CertFile)
	add(c.Token != "", "a token")
	add(c.TokenFile != "", "the token of "+c.TokenFile)
	add(c.Username != "" || c.Password != "", "a password")
	if who == nil {
		who = []string{"no credentials"}
	}
	server := "a URL that does not parse"
	if u, err := url.Parse(c.Server); err == nil {
		server = u.Redacted()
	}
	return fmt.Sprintf("%s with %s", server, strings.Join(who, ", "))
}

// GoString is String, so that the verb %#v shows no secrets either.
func (c Config) GoString() string { return c.String() }

// check returns the server's URL, or an error that names the wrong field.
func (c Config) check() (*url.URL, error) {
	base, err := serverURL(c.Server)
	if err != nil {
		return nil, fmt.Errorf("client: Server: %w", err)
	}
	if err := checkAuthorities(c.CA); err != nil {
		return nil, fmt.Errorf("client: CA: %w", err)
	}
	secure := len(c.CA) > 0 || c.Insecure || c.ServerName != "" || len(c.Cert) > 0 || c.CertFile != ""
	switch {
	case c.Insecure && len(c.CA) > 0:
		return nil, errors.New("client: CA: it has no effect with Insecure; leave one of them out")
	case base.Scheme == "http" && secure:
		return nil, errors.New("client: Server: certificates have no effect over http; use an https URL, or leave them out")
	case (len(c.Cert) > 0) != (len(c.Key) > 0):
		return nil, errors.New("client: Cert and Key: only one is set; set both, or none")
	case (c.CertFile != "") != (c.KeyFile != ""):
		return nil, errors.New("client: CertFile and KeyFile: only one is set; set both, or none")
	case len(c.Cert) > 0 && c.CertFile != "":
		return nil, errors.New("client: Cert and CertFile: both are set; set one of them")
	case (c.Username != "" || c.Password != "") && (c.Token != "" || c.TokenFile != ""):
		return nil, errors.New("client: Token and Username: both are set; use a token or a password")
	case c.Username == "" && c.Password != "":
		return nil, errors.New("client: Username: it is missing; Password needs it")
	case strings.ContainsAny(c.Token, "\r\n"):
		return nil, errors.New("client: Token: it has more than one line; a token is one line")
	case c.Impersonate.User == "" && (c.Impersonate.UID != "" || len(c.Impersonate.Groups)+len(c.Impersonate.Extra) > 0):
		return nil, errors.New("client: Impersonate.User: it is missing; UID, Groups and Extra need it")
	}
	return base, nil
}

// serverURL parses the URL of a server. Its errors do not repeat the URL, which may contain a password.
func serverURL(text string) (*url.URL, error) {
	const want = "want https://host[:port][/path]"
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New("it is empty; " + want)
	case err != nil:
		return nil, errors.New("the URL does not parse; " + want)
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, errors.New("the URL has no scheme or host; " + want)
	case u.User != nil:
		return nil, errors.New("the URL has a user; credentials are separate fields")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("the URL has a query or fragment; " + want)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}, nil
}

// proxyURL parses the URL of a proxy. Its errors do not repeat the URL.
func proxyURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, errors.New("the URL does not parse; want http://, https:// or socks5://host:port")
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u, nil
	}
	return nil, fmt.Errorf("the scheme %q is not supported; use http, https or socks5", u.Scheme)
}

// checkAuthorities returns an error if PEM certificates are not valid. No certificates are valid.
func checkAuthorities(pem []byte) error {
	if len(pem) == 0 || x509.NewCertPool().AppendCertsFromPEM(pem) {
		return nil
	}
	return errors.New("there is no certificate in it; want certificates in PEM")
}

// readFile reads a file up to a maximum size. Its errors name the file.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxConfigFile {
		return nil, fmt.Errorf("%s: it is longer than %d bytes", path, maxConfigFile)
	}
	return text, nil
}
