package authn_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
)

func TestAuthorities(t *testing.T) {
	one, two, other := ca(t, nil), ca(t, nil), ca(t, nil)
	block := func(kind string, of []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: of}))
	}
	bundle := "# two authorities\n" + block("CERTIFICATE", one.cert.Raw) + block("PRIVATE KEY", []byte("k")) + "text\n" + block("CERTIFICATE", two.cert.Raw)
	pool, err := authn.Authorities([]byte(bundle))
	if err != nil {
		t.Fatal(err)
	}
	x509s := authn.X509(func() *x509.CertPool { return pool })
	for by, want := range map[*authority]bool{one: true, two: true, other: false} {
		r := httptest.NewRequest("GET", "/", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{client(t, by, pkix.Name{CommonName: "joe"})}}
		if resp, err := x509s.Authenticate(r); (resp != nil && err == nil) != want {
			t.Errorf("%v, %v; want a user: %v", resp, err, want)
		}
	}
	for content, want := range map[string]string{
		"":                                     "no certificate in PEM",
		"s3cret":                               "no certificate in PEM",
		block("PRIVATE KEY", nil):              "no certificate in PEM",
		bundle[:len(bundle)-40]:                "1 of its 3 blocks in PEM are damaged: replace or remove them", // the second certificate is cut off
		strings.Replace(bundle, "MI", "!I", 1): "1 of its 3 blocks in PEM are damaged",
		bundle + block("CERTIFICATE", []byte("s3cret")): "certificate 3: x509: malformed certificate",
	} {
		_, err := authn.Authorities([]byte(content))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%.20q: %v, want %q", content, err, want)
		}
	}
}

func FuzzAuthorities(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca(f, nil).cert.Raw}))
	f.Fuzz(func(t *testing.T, content []byte) {
		if pool, err := authn.Authorities(content); (pool == nil) == (err == nil) {
			t.Errorf("%v and %v", pool, err)
		}
	})
}
