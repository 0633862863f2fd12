package client

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// tokenAge is the age at which a token is read again from its file.
const tokenAge = time.Minute

// identity holds the credentials of a Config and reads them again from their files.
type identity struct {
	basic       string // the Authorization header; "" without a password
	tokenFile   string
	certFile    string
	keyFile     string
	impersonate http.Header
	failed      func(file string, err error)

	mu       sync.Mutex // guards all fields below
	token    string
	read     time.Time // when the token file was last read, or could not be read
	pair     *tls.Certificate
	pairTime [2]fileTime // of the files that pair was read from
}

type fileTime struct {
	modified time.Time
	size     int64
}

func newIdentity(cfg Config, failed func(string, error)) (*identity, error) {
	id := &identity{tokenFile: cfg.TokenFile, certFile: cfg.CertFile, keyFile: cfg.KeyFile, failed: failed, token: cfg.Token}
	if cfg.Username != "" {
		id.basic = "Basic " + base64.StdEncoding.EncodeToString([]byte(cfg.Username+":"+cfg.Password))
	}
	if cfg.TokenFile != "" {
		token, err := readToken(cfg.TokenFile)
		switch {
		case err == nil:
			id.token = token
		case cfg.Token == "":
			return nil, fmt.Errorf("client: TokenFile: %w", err)
		default:
			failed(cfg.TokenFile, err)
		}
		id.read = time.Now()
	}
	switch {
	case len(cfg.Cert) > 0:
		pair, err := tls.X509KeyPair(cfg.Cert, cfg.Key)
		if err != nil {
			return nil, fmt.Errorf("client: Cert and Key: %w", err)
		}
		id.pair = &pair
	case cfg.CertFile != "":
		pair, when, err := readPair(cfg.CertFile, cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("client: CertFile and KeyFile: %w", err)
		}
		id.pair, id.pairTime = pair, when
	}
	id.impersonate = impersonation(cfg.Impersonate)
	return id, nil
}

func impersonation(i Impersonation) http.Header {
	if i.User == "" {
		return nil
	}
	h := http.Header{"Impersonate-User": {i.User}}
	if i.UID != "" {
		h.Set("Impersonate-Uid", i.UID)
	}
	for _, group := range i.Groups {
		h.Add("Impersonate-Group", group)
	}
	for key, values := range i.Extra {
		name := "Impersonate-Extra-" + headerKey(strings.ToLower(key))
		for _, v := range values {
			h.Add(name, v)
		}
	}
	return h
}

// headerKey returns a key as part of the name of a header: bytes that are not allowed in such names are percent-encoded.
func headerKey(key string) string {
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("!#$&'*+-.^_`|~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// setHeaders adds the credentials to a request.
func (id *identity) setHeaders(h http.Header) {
	for name, values := range id.impersonate {
		h[name] = values
	}
	if id.basic != "" {
		h.Set("Authorization", id.basic)
	} else if token := id.bearer(); token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
}

// bearer returns the current token.
func (id *identity) bearer() string {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.tokenFile != "" && time.Since(id.read) >= tokenAge {
		id.readAgain()
	}
	return id.token
}

// refused is called after a 401 with the header that the server refused. It reports whether there is another token now.
func (id *identity) refused(authorization string) bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.tokenFile == "" {
		return false
	}
	if "Bearer "+id.token == authorization {
		id.readAgain()
	}
	return "Bearer "+id.token != authorization
}

// readAgain reads the token file again. The caller holds mu.
func (id *identity) readAgain() {
	id.read = time.Now()
	token, err := readToken(id.tokenFile)
	if err != nil {
		id.failed(id.tokenFile, err)
		return
	}
	id.token = token
}

// certificate implements tls.Config.GetClientCertificate.
func (id *identity) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.certFile != "" {
		if when, err := pairTime(id.certFile, id.keyFile); err != nil {
			id.failed(id.certFile, err)
		} else if when != id.pairTime {
			if pair, when, err := readPair(id.certFile, id.keyFile); err != nil {
				id.failed(id.certFile, err)
			} else {
				id.pair, id.pairTime = pair, when
			}
		}
	}
	if id.pair == nil {
		return &tls.Certificate{}, nil
	}
	return id.pair, nil
}

// readToken reads a token file. Its errors name the file and do not contain its content.
func readToken(file string) (string, error) {
	text, err := readFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	switch {
	case token == "":
		return "", fmt.Errorf("%s is empty; want a token", file)
	case strings.ContainsAny(token, "\r\n"):
		return "", fmt.Errorf("%s has more than one line; want a token", file)
	}
	return token, nil
}

func readPair(certFile, keyFile string) (*tls.Certificate, [2]fileTime, error) {
	when, err := pairTime(certFile, keyFile)
	if err != nil {
		return nil, when, err
	}
	cert, err := readFile(certFile)
	if err != nil {
		return nil, when, err
	}
	key, err := readFile(keyFile)
	if err != nil {
		return nil, when, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, when, fmt.Errorf("%s and %s: %w", certFile, keyFile, err)
	}
	return &pair, when, nil
}

func pairTime(certFile, keyFile string) (when [2]fileTime, err error) {
	for i, file := range []string{certFile, keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return when, err
		}
		if info.IsDir() {
			return when, errors.New(file + " is a folder")
		}
		when[i] = fileTime{info.ModTime(), info.Size()}
	}
	return when, nil
}
