package credentials_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server/credentials"
	"sigs.k8s.io/yaml"
)

func TestKubeconfig(t *testing.T) {
	b := open(t, credentials.Options{})
	t.Chdir(t.TempDir())
	path, err := b.WriteKubeconfig("hello.kubeconfig", "https://127.0.0.1:6443")
	if err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if path != filepath.Join(wd, "hello.kubeconfig") {
		t.Errorf("the path is %s, want the absolute one", path)
	}
	wantMode(t, path, 0o600)
	var got any
	if err := yaml.UnmarshalStrict(read(t, path), &got); err != nil {
		t.Fatal(err)
	}
	data := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	want := map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": "keelson",
		"clusters": []any{map[string]any{"name": "keelson", "cluster": map[string]any{
			"server":                     "https://127.0.0.1:6443",
			"certificate-authority-data": data(b.CAPEM),
		}}},
		"users": []any{map[string]any{"name": "keelson", "user": map[string]any{
			"client-certificate-data": data(b.ClientCertPEM),
			"client-key-data":         data(b.ClientKeyPEM),
			"token":                   b.Token,
		}}},
		"contexts": []any{map[string]any{"name": "keelson", "context": map[string]any{"cluster": "keelson", "user": "keelson"}}},
	}
	a, _ := yaml.Marshal(got)
	if w, _ := yaml.Marshal(want); !bytes.Equal(a, w) {
		t.Errorf("the kubeconfig is\n%s\nwant\n%s", a, w)
	}
}

func TestAKubeconfigIsRewrittenAsAWhole(t *testing.T) {
	b := open(t, credentials.Options{})
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	write(t, path, nil)
	for _, server := range []string{"https://127.0.0.1:1", "https://127.0.0.1:2"} {
		before, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		info, _ := before.Stat()
		if _, err := b.WriteKubeconfig(path, server); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if os.SameFile(info, after) {
			t.Error("the file was written in place: a reader may find half of it")
		}
		before.Close()
		if !strings.Contains(string(read(t, path)), server+"\n") {
			t.Errorf("it does not name %s", server)
		}
		wantMode(t, path, 0o600)
	}
	if got := list(t, dir); len(got) != 1 {
		t.Errorf("the directory holds %q", got)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if got, err := b.WriteKubeconfig(link, "https://127.0.0.1:3"); err != nil || got != link {
		t.Errorf("WriteKubeconfig = %s, %v; want %s", got, err, link)
	}
	if !strings.Contains(string(read(t, path)), "https://127.0.0.1:3\n") {
		t.Error("the file behind the link was not written")
	}
}

func TestKubeconfigsForOthersAreNotOverwritten(t *testing.T) {
	b := open(t, credentials.Options{})
	path := filepath.Join(t.TempDir(), "config")
	for _, content := range []string{"package main\n", "{}", "a: b\n", "", "apiVersion: v1\nkind: Config\n", "\x00\xff"} {
		write(t, path, []byte(content))
		if _, err := b.WriteKubeconfig(path, "https://127.0.0.1:1"); err != nil || !strings.Contains(string(read(t, path)), "server: https://127.0.0.1:1") {
			t.Errorf("%q was not replaced: %v", content, err)
		}
	}
	for _, content := range []string{
		"apiVersion: v1\nkind: Config\nclusters: [{name: production, cluster: {server: https://example.com}}]\n",
		"apiVersion: v1\nkind: Config\nusers: [{name: me, user: {token: x}}]\n",
	} {
		write(t, path, []byte(content))
		_, err := b.WriteKubeconfig(path, "https://127.0.0.1:1")
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("error %v, want one that names the file and a cure", err)
		}
		if got := string(read(t, path)); got != content {
			t.Errorf("%q became %q", content, got)
		}
	}
	for _, server := range []string{"", "127.0.0.1:6443", "http://127.0.0.1", "https://", "://"} {
		if _, err := b.WriteKubeconfig(filepath.Join(t.TempDir(), "x"), server); err == nil {
			t.Errorf("server %q is accepted", server)
		}
	}
	if _, err := b.WriteKubeconfig(filepath.Join(t.TempDir(), "missing", "x"), "https://127.0.0.1:1"); err == nil {
		t.Error("a missing directory is accepted")
	}
}

// A client with the contents of the kubeconfig verifies the server, and the server verifies the client.
func TestHandshake(t *testing.T) {
	b := open(t, credentials.Options{Dir: filepath.Join(t.TempDir(), "pki")})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 0 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		opts := x509.VerifyOptions{Roots: b.ClientCAs, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if _, err := r.TLS.PeerCertificates[0].Verify(opts); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	srv.Listener = tls.NewListener(srv.Listener, b.TLSConfig()) // StartTLS would add a certificate of its own
	srv.Start()
	defer srv.Close()
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	otherAuthority := open(t, credentials.Options{})
	for _, test := range []struct {
		name   string
		bundle *credentials.Bundle // has the certificate of the client
		want   int
	}{{"its own", b, http.StatusOK}, {"none", nil, http.StatusForbidden}, {"another authority's", otherAuthority, http.StatusUnauthorized}} {
		config := &tls.Config{RootCAs: x509.NewCertPool()}
		config.RootCAs.AppendCertsFromPEM(b.CAPEM)
		if test.bundle != nil {
			pair, err := tls.X509KeyPair(test.bundle.ClientCertPEM, test.bundle.ClientKeyPEM)
			if err != nil {
				t.Fatal(err)
			}
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		for _, host := range []string{"localhost", "127.0.0.1"} {
			transport := &http.Transport{TLSClientConfig: config.Clone(), DialContext: (&net.Dialer{}).DialContext}
			res, err := (&http.Client{Transport: transport}).Get("https://" + net.JoinHostPort(host, port))
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
				continue
			}
			res.Body.Close()
			transport.CloseIdleConnections()
			if res.StatusCode != test.want {
				t.Errorf("%s: status %d, want %d", test.name, res.StatusCode, test.want)
			}
		}
	}
	_, err = (&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: otherAuthority.ClientCAs}}}).Get("https://localhost:" + port)
	if err == nil {
		t.Error("a client that trusts another authority is content")
	}
}
