package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/bench/internal/program"
	"github.com/keelson-dev/keelson/examples/bench/internal/programtest"
)

// TestCertificate checks that the certificate is that of -cert, or a self-signed one for this host.
func TestCertificate(t *testing.T) {
	t.Run("given", func(t *testing.T) {
		dir := t.TempDir()
		cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		certPEM, keyPEM, err := (&program.Options{}).KeyPair()
		if err != nil {
			t.Fatal(err)
		}
		for path, content := range map[string][]byte{cert: certPEM, key: keyPEM} {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p := start(t, "-cert", cert, "-key", key)
		p.Get("/readyz").Want(http.StatusOK) // the client trusts only this certificate
	})
	t.Run("made", func(t *testing.T) {
		p := start(t)
		shown := shownBy(t, p)
		roots := x509.NewCertPool()
		roots.AddCert(shown)
		for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
			if _, err := shown.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
				t.Errorf("for %s: %v", host, err)
			}
		}
		if err := shown.CheckSignatureFrom(shown); err != nil {
			t.Errorf("it is not signed by itself: %v", err)
		}
		if other := shownBy(t, start(t)); other.Equal(shown) {
			t.Error("another process shows the same one")
		}
	})
}

func shownBy(t *testing.T, p *programtest.Process) *x509.Certificate {
	t.Helper()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(p.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0]
}
