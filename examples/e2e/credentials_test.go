package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"math/big"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The URL that hello prints and writes into the kubeconfig can be dialled, and its certificate is valid for it.
func TestHelloListenAddresses(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"127.0.0.1:0": "127.0.0.1",
		"0.0.0.0:0":   "127.0.0.1",
		":0":          "127.0.0.1",
		"[::]:0":      "127.0.0.1",
		"[::1]:0":     "::1",
		"localhost:0": "localhost",
		"127.0.0.2:0": "127.0.0.2",
	} {
		t.Run(listen, func(t *testing.T) {
			listenable(t, listen)
			hello := harness.Start(t, harness.Options{Listen: listen})
			u, err := url.Parse(hello.URL)
			if err != nil || u.Hostname() != want || u.Port() == "" || u.Port() == "0" {
				t.Errorf("the URL is %s, want one of %s", hello.URL, want)
			}
			if got := server(load(t, hello.Kubeconfig)).Server; got != hello.URL {
				t.Errorf("the kubeconfig has the server %s, want %s", got, hello.URL)
			}
			hello.Kubectl("get", "--raw", "/readyz").Want("ok", "")
		})
	}
}

// listenable skips the test on machines without this address.
func listenable(t *testing.T, address string) {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Skip(err)
	}
	_ = ln.Close()
}

// A serving certificate without the host is issued again under the same CA, without changing other files.
func TestHelloReissuesForAnotherHost(t *testing.T) {
	t.Parallel()
	listenable(t, "127.0.0.2:0")
	first := harness.Start(t, harness.Options{})
	before := readAll(t, filepath.Join(first.Dir, "hello.db.pki"))
	old := load(t, first.Kubeconfig)
	first.Stop()

	second := harness.Start(t, harness.Options{Dir: first.Dir, Listen: "127.0.0.2:0"})
	wantChanged(t, before, readAll(t, filepath.Join(second.Dir, "hello.db.pki")), "serving.pem")
	second.Kubectl("get", "widgets").OK()
	if got := server(load(t, second.Kubeconfig)).CertificateAuthorityData; string(got) != string(server(old).CertificateAuthorityData) {
		t.Error("the CA changed")
	}
}

// Expired certificates are issued again under the same CA.
func TestHelloReissuesExpired(t *testing.T) {
	t.Parallel()
	first := harness.Start(t, harness.Options{})
	pki := filepath.Join(first.Dir, "hello.db.pki")
	first.Stop()
	for _, name := range []string{"serving.pem", "client.pem"} {
		write(t, pki, name, expired(t, read(t, filepath.Join(pki, "ca.pem")), read(t, filepath.Join(pki, name))))
	}
	before := readAll(t, pki)

	second := harness.Start(t, harness.Options{Dir: first.Dir})
	wantChanged(t, before, readAll(t, pki), "client.pem", "serving.pem")
	for _, without := range []func(u *clientcmdapi.AuthInfo){
		func(u *clientcmdapi.AuthInfo) { u.Token = "" },
		func(u *clientcmdapi.AuthInfo) { u.ClientCertificateData, u.ClientKeyData = nil, nil },
	} {
		kubectlAs(t, second, without).Run("", "get", "widgets").OK()
	}
}

// expired returns a certificate and key in PEM like that of leaf, but valid until yesterday.
func expired(t *testing.T, ca, leaf string) string {
	t.Helper()
	authority, err := tls.X509KeyPair([]byte(ca), []byte(ca))
	if err != nil {
		t.Fatal(err)
	}
	like, err := tls.X509KeyPair([]byte(leaf), []byte(leaf))
	if err != nil {
		t.Fatal(err)
	}
	template := *like.Leaf
	template.SerialNumber, template.PublicKey = big.NewInt(1), nil
	template.NotBefore, template.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.CreateCertificate(rand.Reader, &template, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// wantChanged checks that exactly these files have another content.
func wantChanged(t *testing.T, before, after map[string]string, want ...string) {
	t.Helper()
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] != before[name] {
			changed = append(changed, name)
		}
	}
	if !slices.Equal(changed, want) || len(after) != len(before) {
		t.Errorf("of the CA, keys and token, %q changed, want %q", changed, want)
	}
}
