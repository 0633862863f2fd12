package server_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/bootstrap"
	"github.com/keelson-dev/keelson/authn/webhook"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/audit"
	authreviews "github.com/keelson-dev/keelson/server/builtin/reviews"
	"github.com/keelson-dev/keelson/server/internal/audittest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// credentialsSent is what kube-apiserver 1.37.1 answered to requests with credentials of all kinds. It ran with the flags
//
//	--token-auth-file --client-ca-file --enable-bootstrap-token-auth
//	--authentication-token-webhook-config-file --authentication-token-webhook-version=v1
//	--requestheader-client-ca-file --requestheader-allowed-names=front,spare
//	--requestheader-username-headers=X-Remote-User,X-Second-User --requestheader-uid-headers=X-Remote-Uid
//	--requestheader-group-headers=X-Remote-Group,X-Second-Group
//	--requestheader-extra-headers-prefix=X-Remote-Extra-,X-Second-Extra-
type credentialsSent struct {
	Certificates map[string]string // in PEM, by name
	Secrets      []*corev1.Secret  // of bootstrap tokens
	Requests     []struct {
		Method, Path string
		Headers      [][2]string
		Cert         string // name of the client certificate
		Code         int
		User         *authenticationv1.UserInfo // in the SelfSubjectReview of an answer
		Message      string                     // of the Status of an answer
	}
}

func (s *credentialsSent) certificate(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(s.Certificates[name]))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return cert
}

func (s *credentialsSent) pool(t *testing.T, name string) func() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.certificate(t, name))
	return func() *x509.CertPool { return pool }
}

// secretsOf is a reader of a few Secrets.
type secretsOf struct {
	runtime.Reader[*corev1.Secret]
	list []*corev1.Secret
}

func (s secretsOf) Ready(context.Context) error { return nil }

func (s secretsOf) Get(_ context.Context, namespace, name string, _ runtime.Freshness) (*corev1.Secret, error) {
	for _, one := range s.list {
		if one.Namespace == namespace && one.Name == name {
			return one, nil
		}
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

// tokenStatuses are what the webhook answers for tokens; it knows no others.
func tokenStatuses() map[string]string {
	return map[string]string{
		"hook-joe":        `{"authenticated":true,"user":{"username":"joe","uid":"7","groups":["h"],"extra":{"k":["v"]}}}`,
		"hook-error":      `{"error":"no such token"}`,
		"hook-both":       `{"authenticated":true,"error":"ignored","user":{"username":"both"}}`,
		"hook-nameless":   `{"authenticated":true,"user":{}}`,
		"hook-for-server": `{"authenticated":true,"user":{"username":"aimed"},"audiences":["https://kubernetes.default.svc"]}`,
		"hook-for-x":      `{"authenticated":true,"user":{"username":"aimed"},"audiences":["x"]}`,
		"hook-anonymous":  `{"authenticated":true,"user":{"username":"system:anonymous","groups":["system:unauthenticated"]}}`,
		"hook-masters":    `{"authenticated":true,"user":{"username":"m","groups":["system:masters"]}}`,
	}
}

// authenticators returns the authenticators that kube-apiserver had.
func (s *credentialsSent) authenticators(t *testing.T) server.Extension {
	const audience = "https://kubernetes.default.svc"
	statuses := tokenStatuses()
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		status := statuses[review.Spec.Token]
		if status == "" {
			status = "{}"
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":%s}`, status)
	}))
	t.Cleanup(hook.Close)
	asks, err := webhook.New(client.Config{Server: hook.URL}, webhook.Options{Audiences: []string{audience}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(asks.Close)
	proxy, err := authn.AuthenticatingProxy(authn.ProxyOptions{
		Roots: s.pool(t, "front-ca"), Names: []string{"front", "spare"}, User: []string{"X-Remote-User", "X-Second-User"}, UID: []string{"X-Remote-Uid"},
		Group: []string{"X-Remote-Group", "X-Second-Group"}, Extra: []string{"X-Remote-Extra-", "X-Second-Extra-"},
	})
	if err != nil {
		t.Fatal(err)
	}
	tokens := authn.StaticTokens(map[string]authn.User{
		"token-alice": {Name: "alice", UID: "1001", Groups: []string{"dev", "qa"}}, "token-bob": {Name: "bob", UID: "1002"},
		"TOKEN-ADMIN": {Name: "admin", UID: "admin", Groups: []string{"system:masters"}},
	})
	return server.ExtensionFunc(func(h *server.Host) error {
		for name, a := range map[string]authn.Authenticator{
			authn.RequestHeader:     proxy,
			authn.ClientCertificate: authn.X509(s.pool(t, "client-ca")),
			authn.TokenFile:         authn.BearerToken(authn.ForAudiences(tokens, audience)),
			authn.BootstrapTokens:   authn.BearerToken(authn.ForAudiences(bootstrap.New(secretsOf{list: s.Secrets}, bootstrap.Options{}), audience)),
			authn.TokenWebhook:      authn.BearerToken(asks),
		} {
			if err := h.Authenticate(name, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestCredentialsAsKubeAPIServer checks that requests with credentials of all kinds, alone and together, have the users that they
// have in kube-apiserver, and that no credential is in a log, an audit event, a metric or an answer.
func TestCredentialsAsKubeAPIServer(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/authentication/kube-apiserver.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var sent credentialsSent
	if err := json.NewDecoder(text).Decode(&sent); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.DebugLevel)
	events := &audittest.Log{}
	srv, err := server.New(server.Options{
		Policy: server.Policy{
			NoAdministrator: true, Audiences: []string{"https://kubernetes.default.svc"},
			Audit: []audit.Backend{{Name: "all", Policy: &audit.Policy{Rules: []audit.Rule{{Level: audit.Metadata}}}, Sink: events}},
		},
		Observe: server.Observe{Logger: zap.New(core)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	for _, e := range []server.Extension{authreviews.New(authreviews.Options{}), sent.authenticators(t)} {
		if err := srv.Install(e); err != nil {
			t.Fatal(err)
		}
	}
	if len(sent.Requests) < 400 {
		t.Errorf("only %d requests", len(sent.Requests))
	}
	var answers strings.Builder
	for _, one := range sent.Requests {
		body, head := "", fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\n", one.Method, one.Path)
		for _, h := range one.Headers {
			head += h[0] + ": " + h[1] + "\r\n"
		}
		if one.Method == http.MethodPost {
			body = `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
			head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head + "\r\n" + body)))
		if err != nil {
			t.Fatal(err)
		}
		r.TLS, r.RemoteAddr = &tls.ConnectionState{}, "127.0.0.1:1"
		if one.Cert != "" {
			r.TLS.PeerCertificates = []*x509.Certificate{sent.certificate(t, one.Cert)}
		}
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, r.WithContext(t.Context()))
		fmt.Fprintln(&answers, w.Header(), w.Body)
		var got struct {
			Message string
			Status  struct{ UserInfo *authenticationv1.UserInfo }
		}
		_ = json.Unmarshal(w.Body.Bytes(), &got) // not all answers are a review
		switch {
		case one.User != nil && one.User.Username == "": // a user needs a name here: see authn.User
			if w.Code != http.StatusUnauthorized {
				t.Errorf("%s %q: %d for a user without a name", one.Cert, one.Headers, w.Code)
			}
		case one.Code == http.StatusSwitchingProtocols: // authorized; the kind does not exist here
			if w.Code != http.StatusNotFound {
				t.Errorf("%s %q: %d", one.Cert, one.Headers, w.Code)
			}
		case w.Code != one.Code || one.User == nil && got.Message != one.Message:
			t.Errorf("%s %q: %d %s, want %d %s", one.Cert, one.Headers, w.Code, got.Message, one.Code, one.Message)
		case one.User != nil:
			if diff := cmp.Diff(one.User, got.Status.UserInfo); diff != "" {
				t.Errorf("%s %q (-want +got): %s", one.Cert, one.Headers, diff)
			}
		}
	}
	recorded, err := json.Marshal(events.Events())
	if err != nil || len(events.Events()) < len(sent.Requests) {
		t.Errorf("%d events, %v", len(events.Events()), err)
	}
	metrics := httptest.NewRecorder()
	srv.Handler().ServeHTTP(metrics, httptest.NewRequestWithContext(authn.WithUser(t.Context(), authn.System()), http.MethodGet, "/metrics", nil))
	var lines strings.Builder
	for _, line := range logs.All() {
		fmt.Fprintln(&lines, line.Message, line.ContextMap())
	}
	for where, text := range map[string]string{"an answer": answers.String(), "the log": lines.String(), "an audit event": string(recorded), "a metric": metrics.Body.String()} {
		for _, secret := range append(slices.Collect(maps.Keys(tokenStatuses())), "token-alice", "token-bob", "TOKEN-ADMIN", "0123456789abcde", "Token-Alice", "dG9rZW4tYWxpY2U") {
			if strings.Contains(text, secret) {
				t.Errorf("%s contains the credential %s", where, secret)
			}
		}
	}
	if logs.Len() == 0 {
		t.Error("the log is empty")
	}
}
