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

// Config says where a server is, whom to trust, and who the client is. Kubeconfig and InCluster make a Config from files; a
// program may fill in one itself. Its String shows no secrets, and its JSON has none.
type Config struct {
	// Server is the URL: http or https, a host, perhaps a port and a path. API paths are below its path; a Request without a
	// path is sent to the URL itself, as webhooks want it. It has no user, query or fragment.
	Server string
	// CA has the certificates in PEM of the authorities that the server's certificate may be issued by. Empty: those that the
	// system trusts. It is not read again from the file that it came from.
	CA []byte
	// ServerName is the name that the server's certificate is checked for, and SNI; "" is the host of Server.
	ServerName string
	// Insecure accepts any certificate of the server. An attacker between client and server can then read and change everything.
	// It excludes CA.
	Insecure bool
	// Proxy returns the proxy for a request, or nil. nil is http.ProxyFromEnvironment, which has none for loopback addresses.
	Proxy func(*http.Request) (*url.URL, error) `json:"-"`
	// DisableCompression asks the server for answers that are not compressed.
	DisableCompression bool

	// Cert and Key are the client certificate in PEM and its key. CertFile and KeyFile name files instead, which are read
	// again for a new connection after they changed. Either both are set or none, with the same spelling.
	Cert              []byte
	Key               []byte `json:"-"`
	CertFile, KeyFile string
	// Token is a bearer token. TokenFile names a file that has it, which is read again after a minute, and at once when the
	// server answers 401; a token from the file comes before Token, which is used if the file cannot be read.
	Token     string `json:"-"`
	TokenFile string
	// Username and Password are for basic authentication. They exclude Token and TokenFile.
	Username string
	Password string `json:"-"`
	// Impersonate is whom the server shall take the client for. The zero Impersonation is nobody.
	Impersonate Impersonation
}

// Impersonation is another user that a client acts as. UID, Groups and Extra need User.
type Impersonation struct {
	User   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// String shows where the server is and how the client is authenticated, without secrets.
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

// GoString is String: the verb %#v shows no secrets either.
func (c Config) GoString() string { return c.String() }

// check returns the server's URL, or says which field is wrong.
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

// checkAuthorities says what is wrong with certificates in PEM; nothing is wrong with none.
func checkAuthorities(pem []byte) error {
	if len(pem) == 0 || x509.NewCertPool().AppendCertsFromPEM(pem) {
		return nil
	}
	return errors.New("there is no certificate in it; want certificates in PEM")
}

// readFile reads a file of bounded size. Its errors name the file.
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
