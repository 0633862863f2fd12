package jwt_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	gojose "github.com/go-jose/go-jose/v4"
)

// provider is an OpenID Connect provider. It serves what is at a path, over TLS.
type provider struct {
	URL   string
	CA    string // in PEM
	pages sync.Map
	*httptest.Server
}

// newProvider returns a provider at an address, such as 127.0.0.1:0.
func newProvider(tb testing.TB, address string) *provider {
	tb.Helper()
	certificate, ca := newCertificate(tb)
	p := &provider{CA: ca}
	p.Server = httptest.NewUnstartedServer(p)
	if address != "127.0.0.1:0" {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			tb.Fatal(err)
		}
		p.Listener.Close()
		p.Listener = listener
	}
	p.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	p.StartTLS()
	tb.Cleanup(p.Close)
	p.URL = p.Server.URL
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, ok := p.pages.Load(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	if handle, ok := page.(http.HandlerFunc); ok {
		handle(w, r)
		return
	}
	text, _ := page.(string)
	_, _ = w.Write([]byte(text))
}

// issue serves the discovery document of an issuer and its keys below a path, and returns the URL of the document.
func (p *provider) issue(issuer, path string, keys ...gojose.JSONWebKey) string {
	p.pages.Store(path+"/discovery", encodeJSON(map[string]any{"issuer": issuer, "jwks_uri": p.URL + path + "/keys", "response_types_supported": []string{"id_token"}}))
	p.pages.Store(path+"/keys", encodeJSON(gojose.JSONWebKeySet{Keys: keys}))
	return p.URL + path + "/discovery"
}

func encodeJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// newCertificate returns a certificate for 127.0.0.1, and its authority in PEM.
func newCertificate(tb testing.TB) (tls.Certificate, string) {
	tb.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "issuers"}, NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"issuer.example"},
	}
	key := newEC(tb, elliptic.P256())
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func newRSA(tb testing.TB) *rsa.PrivateKey {
	tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func newEC(tb testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// public returns the public part of a key, for a key set.
func public(id string, key crypto.Signer) gojose.JSONWebKey {
	return gojose.JSONWebKey{Key: key.Public(), KeyID: id, Use: "sig"}
}

func base64URL(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// sign returns a token with claims in JSON.
func sign(tb testing.TB, alg, id string, key any, claims string) string {
	tb.Helper()
	signer, err := gojose.NewSigner(gojose.SigningKey{Algorithm: gojose.SignatureAlgorithm(alg), Key: gojose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	signed, err := signer.Sign([]byte(claims))
	if err != nil {
		tb.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// signRaw signs a header as it is, with RS256 whatever it says.
func signRaw(tb testing.TB, header string, key *rsa.PrivateKey, claims string) string {
	tb.Helper()
	text := base64URL(header) + "." + base64URL(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		tb.Fatal(err)
	}
	return text + "." + base64URL(string(signature))
}

// signHMAC signs a header as it is, with HS256 and a secret.
func signHMAC(header string, secret []byte, claims string) string {
	text := base64URL(header) + "." + base64URL(claims)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + base64URL(string(mac.Sum(nil)))
}

// dial connects to the provider, whatever the address is.
func (p *provider) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, p.Listener.Addr().String())
}
