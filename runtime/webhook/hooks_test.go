package webhook_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// authority issues certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	var der []byte
	a.key, der = a.sign(t, template)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, a.pem = cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// sign makes a key and a certificate for it.
func (a *authority) sign(t testing.TB, template *x509.Certificate) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Unix(0, 0), time.Now().Add(time.Hour)
	by, parent := key, template
	if a.key != nil {
		by, parent = a.key, a.cert
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

// issue returns a certificate for servers and clients with these names.
func (a *authority) issue(t testing.TB, name string, names ...string) tls.Certificate {
	t.Helper()
	key, der := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// hook is a webhook server on this machine.
type hook struct {
	*httptest.Server
	*authority
	conns  atomic.Int64 // all connections that were ever made
	closed chan struct{}
}

// serve starts a hook. It serves HTTP/2 to clients that ask for it.
func serve(t testing.TB, handler http.HandlerFunc, names ...string) *hook {
	t.Helper()
	h := &hook{authority: newAuthority(t), closed: make(chan struct{}, 1000)}
	h.Server = httptest.NewUnstartedServer(handler)
	h.EnableHTTP2 = true
	h.TLS = &tls.Config{
		Certificates: []tls.Certificate{h.issue(t, "hook", names...)}, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequestClientCert,
	}
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			h.conns.Add(1)
		case http.StateClosed:
			h.closed <- struct{}{}
		}
	}
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

func (h *hook) address() string { return h.Listener.Addr().String() }

// say answers with a code and a text.
func say(code int, text string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}
