package client_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/client"
)

// certificate returns a self-signed certificate and its key in PEM.
func certificate(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		NotBefore: time.Now().Add(-time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

func write(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const kubeconfigHead = `
apiVersion: v1
kind: Config
preferences: {}
current-context: main
contexts:
- name: main
  context: {cluster: here, user: me, namespace: default}
- name: alone
  context: {cluster: here}
- name: lost
  context: {cluster: nowhere, user: me}
`

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, "ca")
	write(t, dir, "ca.pem", cert)
	write(t, dir, "key.pem", key)
	write(t, dir, "token", []byte(" from-file\n"))
	data := base64.StdEncoding.EncodeToString
	for _, c := range []struct {
		name, context, cluster, user string
		check                        func(c client.Config) bool
		fails                        string
	}{
		{"files", "", `{server: "https://h:1/p", certificate-authority: ca.pem, tls-server-name: other}`, `{client-certificate: ca.pem, client-key: key.pem, tokenFile: token}`,
			func(c client.Config) bool {
				return c.Server == "https://h:1/p" && bytes.Equal(c.CA, cert) && c.ServerName == "other" &&
					c.CertFile == filepath.Join(dir, "ca.pem") && c.KeyFile == filepath.Join(dir, "key.pem") && c.TokenFile == filepath.Join(dir, "token")
			}, ""},
		{"data", "", fmt.Sprintf(`{server: "https://h", certificate-authority-data: %s, certificate-authority: missing}`, data(cert)),
			fmt.Sprintf(`{client-certificate-data: %s, client-key: key.pem, token: t, as: boss, as-groups: [g]}`, data(cert)),
			func(c client.Config) bool {
				return bytes.Equal(c.CA, cert) && bytes.Equal(c.Cert, cert) && bytes.Equal(c.Key, key) && c.Token == "t" && c.Impersonate.User == "boss"
			}, ""},
		{"a proxy", "", `{server: "https://h", proxy-url: "socks5://u:secret@p:1", insecure-skip-tls-verify: true}`, `{username: u, password: secret}`,
			func(c client.Config) bool {
				u, err := c.Proxy(&http.Request{})
				return err == nil && u.Host == "p:1" && c.Insecure && c.Username == "u" && c.Password == "secret"
			}, ""},
		{"nobody", "alone", `{server: "https://h"}`, `{exec: {command: x}}`, func(c client.Config) bool { return c.Token == "" }, ""},
		{"exec", "", `{server: "https://h"}`, `{exec: {command: x, args: [secret]}}`, nil, `users[0] ("me").exec: plug-ins are not run; use token`},
		{"auth-provider", "", `{server: "https://h"}`, `{auth-provider: {name: gcp}}`, nil, `users[0] ("me").auth-provider: plug-ins are not run; use token`},
		{"no context", "none", `{server: "https://h"}`, `{}`, nil, `contexts: there is no "none"; the file has ["main" "alone" "lost"]`},
		{"no cluster", "lost", `{server: "https://h"}`, `{}`, nil, `contexts[2] ("lost").cluster: clusters: there is no "nowhere"`},
		{"no server", "", `{server: ""}`, `{}`, nil, `clusters[0] ("here").server: it is empty; want https://`},
		{"no scheme", "", `{server: "h:1"}`, `{}`, nil, `server: the URL has no scheme`},
		{"a user in the URL", "", `{server: "https://u:secret@h"}`, `{}`, nil, `server: the URL has a user`},
		{"a broken URL", "", `{server: "https://u:secret@h:%zz"}`, `{}`, nil, `server: the URL does not parse`},
		{"a query", "", `{server: "https://h/p?token=secret"}`, `{}`, nil, `server: the URL has a query`},
		{"a proxy's scheme", "", `{server: "https://h", proxy-url: "ftp://u:secret@p"}`, `{}`, nil, `proxy-url: the scheme "ftp"`},
		{"no authority", "", `{server: "https://h", certificate-authority: key.pem}`, `{}`, nil, `clusters[0] ("here").certificate-authority: there is no certificate`},
		{"a missing file", "", `{server: "https://h", certificate-authority: missing.pem}`, `{}`, nil, `certificate-authority: open ` + filepath.Join(dir, "missing.pem")},
		{"both", "", `{server: "https://h", certificate-authority: ca.pem, insecure-skip-tls-verify: true}`, `{}`, nil, `no effect with insecure-skip-tls-verify`},
		{"no key", "", `{server: "https://h"}`, `{client-certificate: ca.pem}`, nil, `users[0] ("me").client-key: it is missing`},
		{"no token", "", `{server: "https://h"}`, `{tokenFile: gone}`, nil, `users[0] ("me"): TokenFile: open ` + filepath.Join(dir, "gone")},
		{"a token and a password", "", `{server: "https://h"}`, `{token: secret, username: u}`, nil, `use a token or a password`},
		{"a typing error", "", `{server: "https://h", insecure: true}`, `{}`, nil, `unknown field "clusters[0].cluster.insecure"`},
		{"no base64", "", `{server: "https://h", certificate-authority-data: "secret secret"}`, `{}`, nil, `not base64`},
		{"another type", "", `{server: "https://h"}`, `{token: [secret]}`, nil, `has a value of another type`},
	} {
		path := write(t, dir, "kubeconfig", []byte(kubeconfigHead+"clusters: [{name: here, cluster: "+c.cluster+"}]\nusers: [{name: me, user: "+c.user+"}]\n"))
		cfg, err := client.Kubeconfig(path, c.context)
		if err == nil {
			var opened *client.Client
			if opened, err = client.New(cfg, client.Options{}); err == nil {
				opened.Close()
			}
		}
		switch {
		case c.fails == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.fails == "" && !c.check(cfg):
			t.Errorf("%s: %+v", c.name, cfg)
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails) || !strings.Contains(err.Error(), path)):
			t.Errorf("%s: %v; want %q", c.name, err, c.fails)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error has a secret: %v", c.name, err)
		}
	}
}

func TestConfigHasNoSecrets(t *testing.T) {
	cfg := client.Config{Server: "https://u:secret@h", Token: "secret", Password: "secret", Username: "u", Key: []byte("secret"), Cert: []byte("c")}
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte("secret"))
	for _, s := range []string{cfg.String(), fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, &cfg), strings.ReplaceAll(string(text), cfg.Server, "")} {
		if strings.Contains(s, "secret") || strings.Contains(s, encoded) || strings.Contains(s, fmt.Sprintf("%d", []byte("secret"))) {
			t.Errorf("a secret in %s", s)
		}
	}
}

func TestConfigChecks(t *testing.T) {
	cert, key := certificate(t, "c")
	for _, c := range []struct {
		cfg  client.Config
		want string
	}{
		{client.Config{}, "Server: it is empty"},
		{client.Config{Server: "http://h", CA: cert}, "no effect over http"},
		{client.Config{Server: "https://h", CA: []byte("x")}, "CA: there is no certificate"},
		{client.Config{Server: "https://h", Cert: cert}, "Cert and Key: only one"},
		{client.Config{Server: "https://h", Cert: cert, Key: []byte("x")}, "Cert and Key: "},
		{client.Config{Server: "https://h", Cert: cert, Key: key, CertFile: "f", KeyFile: "f"}, "both are set"},
		{client.Config{Server: "https://h", Password: "p"}, "Username: it is missing"},
		{client.Config{Server: "https://h", Token: "a\nb"}, "more than one line"},
		{client.Config{Server: "https://h", Impersonate: client.Impersonation{UID: "1"}}, "Impersonate.User"},
	} {
		if _, err := client.New(c.cfg, client.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v; want %q", c.cfg, err, c.want)
		}
	}
}

func TestInCluster(t *testing.T) {
	dir := t.TempDir()
	cert, _ := certificate(t, "ca")
	env := map[string]string{}
	in := func() (client.Config, error) {
		return client.InClusterFrom(func(name string) string { return env[name] }, dir)
	}
	fails := func(want string) {
		t.Helper()
		if _, err := in(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	fails("KUBERNETES_SERVICE_HOST")
	env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"] = "fd00::1", "443"
	fails("ca.crt")
	write(t, dir, "ca.crt", cert)
	fails("token")
	write(t, dir, "token", []byte("\n"))
	fails("is empty")
	write(t, dir, "token", []byte("t\n"))
	cfg, err := in()
	if err != nil || cfg.Server != "https://[fd00::1]:443" || cfg.TokenFile != filepath.Join(dir, "token") || !bytes.Equal(cfg.CA, cert) {
		t.Errorf("%v %v", cfg, err)
	}
}
