package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/webhook"
	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/server"
	authreviews "github.com/keelson-dev/keelson/server/builtin/reviews"
)

// The users of a server are those that an authenticating proxy names in headers, and those whose tokens a webhook knows. Requests
// without a credential are accepted at the paths of probes only. The authorities of the proxy's certificate are read again when their
// file changes.
func ExamplePolicy_Authenticator() {
	folder, front, err := proxyFiles()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	hook := tokenWebhook()
	defer hook.Close()

	srv, err := server.New(server.Options{Policy: server.Policy{
		NoAdministrator: true,
		Authenticator:   authn.Anonymous("/livez", "/readyz"),
		TokenCache:      authn.CacheOptions{Entries: 1000}, // tokens that are remembered for ten seconds
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	users := func(h *server.Host) error {
		tokens, err := webhook.New(client.Config{Server: hook.URL}, webhook.Options{})
		if err != nil {
			return err
		}
		h.OnClose(tokens.Close)
		proxies := func(content []byte) error {
			pool, err := authn.Authorities(content)
			if err != nil {
				return err
			}
			proxy, err := authn.AuthenticatingProxy(authn.StandardProxy(func() *x509.CertPool { return pool }, "front"))
			if err != nil {
				return err
			}
			return h.Authenticate(authn.RequestHeader, proxy)
		}
		return errors.Join(
			h.Authenticate(authn.TokenWebhook, authn.BearerToken(tokens)),
			h.Follow(server.ConfigFile{Name: "proxies", Path: filepath.Join(folder, "front-ca.pem"), Use: proxies}),
		)
	}
	if err := errors.Join(srv.Install(server.ExtensionFunc(users)), srv.Install(authreviews.New(authreviews.Options{}))); err != nil {
		fmt.Println(err)
		return
	}

	whoAmI := func(certificate *x509.Certificate, header ...string) {
		r := httptest.NewRequest("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		if certificate != nil { // of the TLS connection
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}}
		}
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, r)
		var review struct {
			Message string
			Status  struct {
				UserInfo struct {
					Username string
					Groups   []string
				}
			}
		}
		_ = json.Unmarshal(w.Body.Bytes(), &review)
		fmt.Println(w.Code, review.Message+review.Status.UserInfo.Username, review.Status.UserInfo.Groups)
	}
	whoAmI(front, "X-Remote-User", "dora", "X-Remote-Group", "dev")
	whoAmI(nil, "Authorization", "Bearer token-of-eve")
	whoAmI(nil, "Authorization", "Bearer wrong")
	whoAmI(nil, "X-Remote-User", "dora") // not from the proxy
	for _, path := range []string{"/livez", "/readyz", "/version"} {
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(path, w.Code)
	}
	// Output:
	// 201 dora [dev system:authenticated]
	// 201 eve [system:authenticated]
	// 401 Unauthorized []
	// 401 Unauthorized []
	// /livez 200
	// /readyz 200
	// /version 401
}

// tokenWebhook returns a webhook that knows one token.
func tokenWebhook() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := "{}"
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"token-of-eve"`) {
			status = `{"authenticated":true,"user":{"username":"eve"}}`
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":%s}`, status)
	}))
}

// proxyFiles writes the certificate of an authority to the file front-ca.pem of a new folder. The authority has signed the certificate
// of a proxy, front.
func proxyFiles() (folder string, front *x509.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", nil, err
	}
	now := time.Now()
	authority := &x509.Certificate{
		Subject: pkix.Name{CommonName: "front-ca"}, SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	proxy := &x509.Certificate{
		Subject: pkix.Name{CommonName: "front"}, SerialNumber: big.NewInt(2), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
	if err != nil {
		return "", nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, proxy, authority, &key.PublicKey, key)
	if err != nil {
		return "", nil, err
	}
	if front, err = x509.ParseCertificate(der); err != nil {
		return "", nil, err
	}
	if folder, err = os.MkdirTemp("", "proxy"); err != nil {
		return "", nil, err
	}
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca})
	return folder, front, os.WriteFile(filepath.Join(folder, "front-ca.pem"), content, 0o600)
}
