package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	"github.com/keelson-dev/keelson/server/credentials"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
)

// Two control planes share an etcd that requires client certificates. Each has its own prefix.
func TestControlPlaneEtcdTLS(t *testing.T) {
	t.Parallel()
	ca, cert, key, files := etcdCertificates(t)
	srv, err := embedded.Start(t.Context(), embedded.Options{Dir: t.TempDir(), UnsafeNoFsync: true, ClientTLS: files})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("closing etcd: %v", err)
		}
	})
	endpoint := srv.Endpoints()[0]
	flags := []string{"--etcd-cafile=" + ca, "--etcd-certfile=" + cert, "--etcd-keyfile=" + key}
	one := harness.Start(t, harness.Options{Example: "controlplane", Etcd: endpoint, Flags: flags})
	two := harness.Start(t, harness.Options{Example: "controlplane", Etcd: endpoint, Flags: append(slices.Clone(flags), "--etcd-prefix=/two")})
	one.KubectlWith(webManifest, "create", "-f", "-").OK()
	two.Kubectl("get", "deploy", "-o", "name").Want("", "")
	two.KubectlWith(webManifest, "create", "-f", "-").OK()
	one.Stop()
	two.Stop()

	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
	config.RootCAs.AppendCertsFromPEM([]byte(read(t, ca)))
	b, err := etcd.Open(t.Context(), etcd.Options{Endpoints: srv.Endpoints(), TLS: config})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, key := range []string{"/registry/deployments/default/web", "/two/registry/deployments/default/web"} {
		if res, err := b.Range(t.Context(), storage.Range{From: key, To: key + "\x00"}); err != nil || len(res.KVs) != 1 {
			t.Errorf("%s: %d keys, %v", key, len(res.KVs), err)
		}
	}

	without := harness.Launch(t, harness.Options{Example: "controlplane", Etcd: endpoint, Flags: flags[:1]})
	if code := without.Wait(); code != 1 || !strings.Contains(without.Stderr(), "certificate") {
		t.Errorf("without a client certificate: %d, %s", code, without.Stderr())
	}
}

// etcdCertificates writes a client's files, and those of an etcd.
func etcdCertificates(t *testing.T) (ca, cert, key string, server embedded.TLS) {
	t.Helper()
	b, err := credentials.Open(credentials.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	der, err := x509.MarshalPKCS8PrivateKey(b.Serving.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	ca = file("ca.crt", b.CAPEM)
	return ca, file("client.crt", b.ClientCertPEM), file("client.key", b.ClientKeyPEM), embedded.TLS{
		CertFile: file("server.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Serving.Certificate[0]})),
		KeyFile:  file("server.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		CAFile:   ca,
	}
}
