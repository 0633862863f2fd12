package authn_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func sign(t testing.TB, template *x509.Certificate, by *authority) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	template.BasicConstraintsValid = true
	if by == nil {
		by = &authority{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func ca(t testing.TB, by *authority) *authority {
	return sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign}, by)
}

func client(t testing.TB, by *authority, name pkix.Name, change ...func(*x509.Certificate)) *x509.Certificate {
	template := &x509.Certificate{Subject: name, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, f := range change {
		f(template)
	}
	return sign(t, template, by).cert
}

func TestX509(t *testing.T) {
	root, other := ca(t, nil), ca(t, nil)
	intermediate := ca(t, root)
	pool := x509.NewCertPool()
	pool.AddCert(root.cert)
	a := authn.X509(func() *x509.CertPool { return pool })

	uid := func(values ...any) pkix.Name {
		n := pkix.Name{CommonName: "u"}
		for _, v := range values {
			n.ExtraNames = append(n.ExtraNames, pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: v})
		}
		return n
	}
	alice := pkix.Name{CommonName: "alice", Organization: []string{"dev", "ops"}}
	for _, tc := range []struct {
		name  string
		chain []*x509.Certificate
		want  string // a prefix
	}{
		{"none", nil, "no opinion"},
		{"good", []*x509.Certificate{client(t, root, alice)}, "alice"},
		{"through an intermediate", []*x509.Certificate{client(t, intermediate, alice), intermediate.cert}, "alice"},
		{"intermediate missing", []*x509.Certificate{client(t, intermediate, alice)}, `error: verifying certificate "alice"`},
		{"another CA", []*x509.Certificate{client(t, other, alice)}, `error: verifying certificate "alice"`},
		{"another CA, which it brings itself", []*x509.Certificate{client(t, other, alice), other.cert}, `error: verifying certificate "alice"`},
		{"for servers", []*x509.Certificate{client(t, root, alice, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})}, `error: verifying certificate "alice"`},
		{"expired", []*x509.Certificate{client(t, root, alice, func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
		})}, `error: verifying certificate "alice"`},
		{"not yet valid", []*x509.Certificate{client(t, root, alice, func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
		})}, `error: verifying certificate "alice"`},
		{"no common name", []*x509.Certificate{client(t, root, pkix.Name{Organization: []string{"system:masters"}})}, "no opinion"},
		{"two UIDs", []*x509.Certificate{client(t, root, uid("a", "b"))}, "error: the certificate's subject has more than one UID"},
		{"empty UID", []*x509.Certificate{client(t, root, uid(""))}, "error: the certificate's subject has a UID that is no text"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: tc.chain}
		if got := result(a, r); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}

	t.Run("user", func(t *testing.T) {
		name := uid("id-1")
		name.Organization = []string{"dev", "ops"}
		cert := client(t, root, name)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
		resp, err := a.Authenticate(r)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(cert.Raw)
		want := authn.User{Name: "u", UID: "id-1", Groups: []string{"dev", "ops"}, Extra: map[string][]string{
			"authentication.kubernetes.io/credential-id": {"X509SHA256=" + hex.EncodeToString(sum[:])},
		}}
		if diff := cmp.Diff(want, resp.User); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("no TLS, no roots", func(t *testing.T) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if got := result(a, r); got != "no opinion" {
			t.Error(got)
		}
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{client(t, root, alice)}}
		if got := result(authn.X509(func() *x509.CertPool { return nil }), r); got != "no opinion" {
			t.Error(got)
		}
	})
}
