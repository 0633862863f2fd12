package scenario

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
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/figures"
	"github.com/keelson-dev/keelson/examples/bench/internal/load"
	"github.com/keelson-dev/keelson/examples/bench/internal/program"
)

// These are the ways in which a client shows who it is. The user is always one of the group bench, who may do everything.
const (
	AsToken        = "token"         // a token of a file
	AsCertificate  = "certificate"   // a client certificate
	AsProxied      = "proxied"       // the headers of an authenticating proxy
	AsReviewed     = "reviewed"      // a token of 1 KB that a webhook reviews
	AsImpersonated = "impersonation" // a user with a token who acts as another one
)

// Identities returns all ways.
func Identities() []string {
	return []string{AsToken, AsCertificate, AsProxied, AsReviewed, AsImpersonated}
}

// AsName returns the name of the scenario of GET with an identity.
func AsName(identity string) string { return "as/" + identity }

// member is the group of the users, which may do everything.
const member = "bench"

// sessionWithIdentities measures GET of objects with each identity, with rv 0 and 16 clients, in a server of its own that accepts all
// identities. Each client has its own connection. The floor does not authenticate.
func (b *Bench) sessionWithIdentities(ctx context.Context, s *server, objects, round int) (err error) {
	if s.name == figures.Floor || objects != b.plan.Objects[0] || !b.plan.wantsGroup(group{prefix: "as/"}, true) {
		return nil
	}
	if s.keeps() && s.filled < objects {
		if err := b.fillStorage(ctx, s, objects); err != nil {
			return err
		}
	}
	known, err := newIdentities(b.dir)
	if err != nil {
		return err
	}
	defer known.close()
	p, err := b.start(ctx, s, objects, "-client-ca", known.authority, "-proxy-ca", known.proxies, "-webhook", known.webhook)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop(ctx)) }()
	if !s.keeps() {
		if err := b.fill(ctx, s, p, 0, objects); err != nil {
			return err
		}
	}
	run := &session{Bench: b, server: s, process: p, objects: objects, round: round}
	for _, identity := range Identities() {
		if err := run.getAs(ctx, AsName(identity), known.client(identity, p.target)); err != nil {
			return err
		}
	}
	return nil
}

// getAs measures GET of single objects by clients with an identity.
func (s *session) getAs(ctx context.Context, scenario string, as load.Target) error {
	clients := as.DialAll(16)
	defer load.CloseAll(clients)
	if err := answered(ctx, clients[0], load.Request{Path: item(0)}); err != nil {
		return fmt.Errorf("%s: %w", scenario, err)
	}
	return s.loop(ctx, scenario, clients, load.Limit{For: s.plan.Get, Least: fewest}, func(ctx context.Context, c *load.Client, worker, n int) error {
		answer, err := c.Do(ctx, load.Request{Path: item(s.some(worker, n)) + "?resourceVersion=0"})
		if err == nil && answer.Size < 500 {
			return fmt.Errorf("%s answers %d bytes for an object", s.name, answer.Size)
		}
		return err
	})
}

// identities are the credentials of clients, and the files with which a server accepts them.
type identities struct {
	authority, proxies, webhook string          // files
	user, proxy                 tls.Certificate // of clients
	token                       string          // for the webhook
	reviews                     *httptest.Server
}

// newIdentities writes the files to dir. close ends the webhook.
func newIdentities(dir string) (_ *identities, err error) {
	i := &identities{
		authority: filepath.Join(dir, "client-ca.pem"), proxies: filepath.Join(dir, "proxy-ca.pem"), webhook: filepath.Join(dir, "webhook.kubeconfig"),
		token: strings.Repeat(rand.Text(), 40)[:1000],
	}
	if i.user, err = newClient(i.authority, pkix.Name{CommonName: member, Organization: []string{member}}); err != nil {
		return nil, err
	}
	if i.proxy, err = newClient(i.proxies, pkix.Name{CommonName: "front-proxy"}); err != nil {
		return nil, err
	}
	i.reviews = httptest.NewUnstartedServer(http.HandlerFunc(i.review))
	cert, key, err := (&program.Options{Addr: "127.0.0.1:0"}).KeyPair()
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	i.reviews.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	i.reviews.StartTLS()
	if err := os.WriteFile(i.webhook, kubeconfig(i.reviews.URL, cert), 0o600); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

func (i *identities) close() { i.reviews.Close() }

// client returns a client of a server that shows who it is in one way.
func (i *identities) client(identity string, t load.Target) load.Target {
	switch identity {
	case AsCertificate:
		t.Token, t.Certificate = "", &i.user
	case AsProxied:
		t.Token, t.Certificate = "", &i.proxy
		t.Header = http.Header{"X-Remote-User": {"somebody"}, "X-Remote-Group": {member}}
	case AsReviewed:
		t.Token = i.token
	case AsImpersonated:
		t.Header = http.Header{"Impersonate-User": {"somebody"}, "Impersonate-Group": {member}}
	}
	return t
}

// review is the webhook.
func (i *identities) review(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string                 `json:"apiVersion"`
		Kind       string                 `json:"kind"`
		Spec       struct{ Token string } `json:"spec"`
		Status     struct {
			Authenticated bool `json:"authenticated"`
			User          struct {
				Username string   `json:"username,omitempty"`
				Groups   []string `json:"groups,omitempty"`
			} `json:"user"`
		} `json:"status"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if review.Status.Authenticated = review.Spec.Token == i.token; review.Status.Authenticated {
		review.Status.User.Username, review.Status.User.Groups = "somebody", []string{member}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the server asks again
}

// kubeconfig returns a kubeconfig for a server without credentials.
func kubeconfig(url string, ca []byte) []byte {
	text, err := json.Marshal(map[string]any{ // JSON is YAML
		"apiVersion": "v1", "kind": "Config", "current-context": "webhook",
		"clusters": []any{map[string]any{"name": "webhook", "cluster": map[string]any{"server": url, "certificate-authority-data": ca}}},
		"contexts": []any{map[string]any{"name": "webhook", "context": map[string]any{"cluster": "webhook", "user": "server"}}},
		"users":    []any{map[string]any{"name": "server", "user": map[string]any{}}},
	})
	if err != nil {
		panic(err) // strings and bytes can be encoded
	}
	return text
}

// newClient returns a client's certificate of a new authority, whose certificate is written to a file.
func newClient(authority string, name pkix.Name) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	begin := time.Now().Add(-time.Hour)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: begin, NotAfter: begin.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	client := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: name, NotBefore: begin, NotAfter: ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, client, ca, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key},
		os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600)
}
