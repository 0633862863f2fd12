package server_test

import (
	"context"
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
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/delegation"
	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	authreviews "github.com/keelson-dev/keelson/server/builtin/reviews"
	"github.com/keelson-dev/keelson/server/servertest"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// issuer issues client certificates.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &issuer{key: key, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: rand.Text()}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	of.cert = of.sign(t, of.cert)
	return of
}

func (i *issuer) sign(t *testing.T, template *x509.Certificate) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, i.cert, &i.key.PublicKey, i.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// client returns a client's certificate.
func (i *issuer) client(t *testing.T, name string, groups ...string) *x509.Certificate {
	t.Helper()
	return i.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name, Organization: groups}, NotBefore: i.cert.NotBefore, NotAfter: i.cert.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// bundle returns authorities in PEM.
func bundle(of ...*issuer) string {
	var b strings.Builder
	for _, i := range of {
		b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.cert.Raw}))
	}
	return b.String()
}

// delegate is an extension server of a host.
type delegate struct {
	*server.Server
	host    *delegation.Cluster
	changed chan delegation.Trust
	failed  chan error
}

func startDelegate(t *testing.T, cfg client.Config) *delegate {
	t.Helper()
	d := &delegate{changed: make(chan delegation.Trust, 100), failed: make(chan error, 10_000)}
	var err error
	d.host, err = delegation.New(cfg, delegation.Options{
		Backoff: time.Millisecond, Client: client.Options{Timeout: time.Minute},
		Hooks: delegation.Hooks{Changed: func(now delegation.Trust) { d.changed <- now }, Failed: func(err error) { d.failed <- err }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.host.Close)
	if d.Server, err = server.New(server.Options{Policy: server.Policy{NoAdministrator: true}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Server.Close() })
	seen := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := authn.UserFrom(r.Context())
		_, _ = fmt.Fprint(w, u.Name, u.Groups, " ", r.Header)
	})
	if err := d.Install(server.ExtensionFunc(func(h *server.Host) error {
		return errors.Join(
			h.Authenticate(authn.RequestHeader, d.host.Proxy()),
			h.Authenticate(authn.ClientCertificate, d.host.Certificates()),
			h.Authenticate(authn.TokenWebhook, authn.BearerToken(d.host.Tokens())),
			h.Delegate(schema.GroupVersion{Group: "example.com", Version: "v1"}, seen),
		)
	})); err != nil {
		t.Fatal(err)
	}
	return d
}

// who returns whom the server takes for the user of a request with a certificate and headers, or the code of an error.
func (d *delegate) who(t *testing.T, cert *x509.Certificate, headers ...string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis/example.com/v1", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	r.TLS = &tls.ConnectionState{}
	if cert != nil {
		r.TLS.PeerCertificates = []*x509.Certificate{cert}
	}
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return fmt.Sprint(w.Code)
	}
	user, _, _ := strings.Cut(w.Body.String(), " map[")
	for i := 0; i < len(headers); i += 2 {
		if strings.Contains(w.Body.String(), headers[i]) {
			t.Errorf("a handler sees the header %s", headers[i])
		}
	}
	return user
}

// TestDelegation checks that a server has the users of its host: those of proxies, of client certificates and of tokens, and that it
// follows the host in whom to trust.
func TestDelegation(t *testing.T) {
	t.Parallel()
	cluster := servertest.Start(t, server.Options{Policy: server.Policy{Users: map[string]authn.User{
		"token-of-jane": {Name: "jane", Groups: []string{"dev"}},
	}}}, builtin.New(builtin.Options{}), authreviews.New(authreviews.Options{}))
	var down atomic.Bool
	way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		cluster.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(way.Close)
	authorities := [3]*issuer{newIssuer(t), newIssuer(t), newIssuer(t)}
	const at = "/api/v1/namespaces/kube-system/configmaps"
	write := func(method, path string, data map[string]string) {
		t.Helper()
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": delegation.Name}, "data": data})
		if err != nil {
			t.Fatal(err)
		}
		if code, body := call(t, cluster.Client(), method, cluster.URL+at+path, string(text)); code > 201 {
			t.Fatal(code, body)
		}
	}
	call(t, cluster.Client(), "POST", cluster.URL+"/api/v1/namespaces", `{"metadata":{"name":"kube-system"}}`)

	d := startDelegate(t, client.Config{Server: way.URL, Token: cluster.Token})
	next := func() {
		t.Helper()
		select {
		case <-d.changed:
		case <-time.After(30 * time.Second):
			t.Fatal("nothing has changed")
		}
	}
	fails := func(with string) {
		t.Helper()
		patience := time.After(30 * time.Second)
		for said := error(nil); ; {
			select {
			case said = <-d.failed:
				if strings.Contains(said.Error(), with) {
					return
				}
			case <-patience:
				t.Fatalf("the error is %v, want %s", said, with)
			}
		}
	}
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: the user is %s, want %s", what, got, want)
		}
	}
	jane := []string{"Authorization", "Bearer token-of-jane"}
	fails("the cluster has no ConfigMap kube-system/extension-apiserver-authentication")
	want("a token", d.who(t, nil, jane...), "jane[dev system:authenticated]")
	want("a token that nobody knows", d.who(t, nil, "Authorization", "Bearer x"), "401")
	user := authorities[0].client(t, "joe", "dev")
	front := authorities[1].client(t, "front")
	as := []string{"X-Remote-User", "amy", "X-Remote-Group", "qa"}
	want("nobody is trusted", d.who(t, front, as...), "403")

	data := map[string]string{
		"client-ca-file": bundle(authorities[0]), "requestheader-client-ca-file": bundle(authorities[1]), "requestheader-allowed-names": `["front"]`,
		"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
		"requestheader-uid-headers": `["X-Remote-Uid"]`, "requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
	}
	write("POST", "", data)
	next()
	want("a client certificate", d.who(t, user), "joe[dev system:authenticated]")
	want("a proxy", d.who(t, front, as...), "amy[qa system:authenticated]")
	want("a proxy of another name", d.who(t, authorities[1].client(t, "other"), as...), "401")
	want("a client as a proxy", d.who(t, user, as...), "joe[dev system:authenticated]")
	want("headers without a certificate", d.who(t, nil, as...), "403")
	want("a certificate of nobody", d.who(t, authorities[2].client(t, "joe")), "401")

	// A rotation: both authorities are trusted, and then only the new one, for the requests of open connections too.
	data["client-ca-file"], data["requestheader-client-ca-file"] = bundle(authorities[0], authorities[2]), bundle(authorities[2], authorities[1])
	write("PUT", "/"+delegation.Name, data)
	next()
	after, afterFront := authorities[2].client(t, "joe", "dev"), authorities[2].client(t, "front")
	for _, cert := range []*x509.Certificate{user, after} {
		want("during a rotation", d.who(t, cert), "joe[dev system:authenticated]")
	}
	for _, cert := range []*x509.Certificate{front, afterFront} {
		want("a proxy during a rotation", d.who(t, cert, as...), "amy[qa system:authenticated]")
	}
	data["client-ca-file"], data["requestheader-client-ca-file"] = bundle(authorities[2]), bundle(authorities[2])
	data["requestheader-username-headers"], data["requestheader-allowed-names"] = `["My-User"]`, `[]`
	write("PUT", "/"+delegation.Name, data)
	next()
	want("an old certificate", d.who(t, user), "401")
	want("an old proxy", d.who(t, front, "My-User", "amy"), "401")
	want("a new certificate", d.who(t, after), "joe[dev system:authenticated]")
	want("a new proxy", d.who(t, afterFront, "My-User", "amy"), "amy[system:authenticated]")

	// A damaged part is not taken, and the others are.
	good := data["client-ca-file"]
	data["client-ca-file"] = "none"
	data["requestheader-username-headers"] = `["X-Remote-User"]`
	write("PUT", "/"+delegation.Name, data)
	fails("the key client-ca-file: it has no certificate in PEM")
	next()
	want("a certificate, with damage", d.who(t, after), "joe[dev system:authenticated]")
	want("a proxy, with damage", d.who(t, afterFront, as...), "amy[qa system:authenticated]")
	data["client-ca-file"], data["requestheader-group-headers"] = good, `"X"`
	write("PUT", "/"+delegation.Name, data)
	fails("the key requestheader-group-headers is no list of strings in JSON")
	want("a proxy, with damage", d.who(t, afterFront, as...), "amy[qa system:authenticated]")

	// Without the host, and without the ConfigMap, what was known stays.
	down.Store(true)
	way.CloseClientConnections()
	fails("") // EOF, or a connection that was reset
	want("a certificate without the host", d.who(t, after), "joe[dev system:authenticated]")
	want("a token that is remembered", d.who(t, nil, jane...), "jane[dev system:authenticated]")
	down.Store(false)
	call(t, cluster.Client(), "DELETE", cluster.URL+at+"/"+delegation.Name, "")
	fails("the cluster has no ConfigMap")
	want("a certificate without the ConfigMap", d.who(t, after), "joe[dev system:authenticated]")

	// A key that is missing is the end of its authorities.
	delete(data, "client-ca-file")
	data["requestheader-group-headers"] = `["X-Remote-Group"]`
	write("POST", "", data)
	next()
	want("a certificate of no authority", d.who(t, after), "403") // it is a proxy, and has no user
}

// TestDelegationBeforeTheHostAnswers checks that nobody with a certificate is anonymous while nobody knows whom the host trusts.
func TestDelegationBeforeTheHostAnswers(t *testing.T) {
	t.Parallel()
	refusal := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }))
	t.Cleanup(refusal.Close)
	d := startDelegate(t, client.Config{Server: refusal.URL})
	<-d.failed
	if got := d.who(t, newIssuer(t).client(t, "joe")); got != "401" {
		t.Errorf("with a certificate the user is %s", got)
	}
	if got := d.who(t, nil); got != "403" {
		t.Errorf("without a certificate the user is %s", got)
	}
	if err := d.host.Ready(context.Background()); err == nil || !strings.Contains(err.Error(), "kube-system/extension-apiserver-authentication of the cluster was not read: ") {
		t.Errorf("Ready = %v", err)
	}
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("/readyz is %d: %s", w.Code, w.Body)
	}
}

// TestDelegationPausesBetweenRequests checks that a cluster that ends each watch at once is not asked again at once.
func TestDelegationPausesBetweenRequests(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	watched := make(chan struct{}, 1000)
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Has("watch") {
			watched <- struct{}{}
			return
		}
		_, _ = fmt.Fprint(w, `{"metadata":{"resourceVersion":"1"},"items":[]}`)
	}))
	t.Cleanup(odd.Close)
	failed := make(chan error, 100)
	c, err := delegation.New(client.Config{Server: odd.URL}, delegation.Options{Backoff: time.Hour, Hooks: delegation.Hooks{
		Failed: func(err error) { failed <- err },
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	select {
	case <-watched:
	case <-time.After(30 * time.Second):
		t.Fatalf("there was no watch: %v", <-failed)
	}
	time.Sleep(50 * time.Millisecond)
	c.Close()
	if n := asked.Load(); n != 2 {
		t.Errorf("%d requests within a pause of an hour, want a list and a watch", n)
	}
}
