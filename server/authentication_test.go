package server_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A program that wraps the server's authenticator can add users by bearer token, before or behind the server's own. The
// administrator can still log in: by the kubeconfig, and by each of its two credentials. Users with another credential are added
// before, since the server's own authenticator takes a request in which it finds no credential as one of system:anonymous.
func TestWrapAuthenticatorAddsUsers(t *testing.T) {
	t.Parallel()
	added := authn.AuthenticatedGroup(authn.Union(
		authn.BearerToken(authn.StaticTokens(map[string]authn.User{"token-of-anna": {Name: "anna"}})),
		authn.Func(func(r *http.Request) (*authn.Response, error) {
			if name := r.Header.Get("X-Badge"); name != "" {
				return &authn.Response{User: authn.User{Name: name}}, nil
			}
			return nil, nil
		}),
	))
	for _, tc := range []struct {
		name  string
		wrap  func(own authn.Authenticator) authn.Authenticator
		badge string // the user of a request with the badge of bert
	}{
		{"before", func(own authn.Authenticator) authn.Authenticator { return authn.Union(added, own) }, "bert"},
		{"behind", func(own authn.Authenticator) authn.Authenticator { return authn.Union(own, added) }, "system:anonymous"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			srv := run(t, server.Options{
				Groups:  []server.Group{widgets()},
				Serving: server.Serving{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")},
				Policy:  server.Policy{WrapAuthenticator: tc.wrap},
			})
			admin, err := client.Kubeconfig(srv.kubeconfig, "")
			if err != nil {
				t.Fatal(err)
			}
			byToken, byCertificate, anna, wrongToken, nobody := admin, admin, admin, admin, admin
			byToken.Cert, byToken.Key = nil, nil
			byCertificate.Token = ""
			for cfg, token := range map[*client.Config]string{&anna: "token-of-anna", &wrongToken: "wrong", &nobody: ""} {
				cfg.Cert, cfg.Key, cfg.Token = nil, nil, token
			}
			if byToken.Token == "" || byCertificate.Cert == nil {
				t.Fatalf("the kubeconfig lacks a token or a certificate: %s", admin)
			}
			for who, cfg := range map[string]client.Config{"the administrator": admin, "the administrator's token": byToken, "the administrator's certificate": byCertificate} {
				if err := listWidgets(t, cfg); err != nil {
					t.Errorf("%s: %v", who, err)
				}
			}
			for want, cfg := range map[string]client.Config{
				`403 widgets.example.com is forbidden: User "anna" cannot list resource`:             anna,
				`403 widgets.example.com is forbidden: User "system:anonymous" cannot list resource`: nobody,
				`401 Unauthorized`: wrongToken,
			} {
				var status apierrors.APIStatus
				if err := listWidgets(t, cfg); !errors.As(err, &status) || !strings.HasPrefix(fmt.Sprint(status.Status().Code, " ", status.Status().Message), want) {
					t.Errorf("%v; want %s", err, want)
				}
			}
			if code, body := tryCall(t, srv.client(t), "GET", srv.url+widgetsPath, "", "X-Badge", "bert"); code != http.StatusForbidden || !strings.Contains(body, `User \"`+tc.badge+`\"`) {
				t.Errorf("the badge of bert: %d %s; want 403 for %s", code, body, tc.badge)
			}
			// Discovery is for members of system:authenticated.
			c := clientOf(t, anna)
			if _, err := c.Resource(t.Context(), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}); err != nil {
				t.Errorf("anna discovers: %v", err)
			}
		})
	}
}

func clientOf(t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func listWidgets(t *testing.T, cfg client.Config) error {
	t.Helper()
	widgets := client.Target{Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, Namespace: "default"}
	return clientOf(t, cfg).List(t.Context(), widgets, metav1.ListOptions{}, &metav1.PartialObjectMetadataList{})
}

// The cause of a 401 is logged with the audit ID of the answer, and is not in the answer. Neither has the credential. The log
// gets at most ten lines a second, and the number of lines that were left out.
func TestTheLogHasTheCauseOfA401(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		srv := servertest.Start(t, server.Options{Observe: server.Observe{Logger: zap.New(core)}}, widgets())
		const cause, token = "the ticket 4711 has expired", "token-of-mallory"
		long := strings.Repeat("x", 1<<20)
		err := host(t, srv).Authenticate(authn.TokenWebhook, authn.Func(func(r *http.Request) (*authn.Response, error) {
			switch r.Header.Get("Authorization") {
			case "Bearer " + token:
				return nil, errors.New(cause)
			case "Bearer long":
				return nil, errors.New(long)
			}
			return nil, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		lines := func() []observer.LoggedEntry {
			return slices.DeleteFunc(logs.TakeAll(), func(e observer.LoggedEntry) bool { return e.Message != "unable to authenticate the request" })
		}
		get := func(token string) answer {
			t.Helper()
			a := roundTrip(t, srv.Anonymous(), "GET", srv.URL+widgetsPath, "", "Authorization", "Bearer "+token)
			wantCode(t, http.StatusUnauthorized, a.code, a.body)
			return a
		}

		a := get(token)
		if text := fmt.Sprint(a.header, a.body); strings.Contains(text, "ticket") || strings.Contains(text, "4711") {
			t.Errorf("the answer has the cause: %s", text)
		}
		got := lines()
		if len(got) != 1 {
			t.Fatalf("%d lines about one request", len(got))
		}
		fields := got[0].ContextMap()
		if text := fmt.Sprint(fields["error"]); !strings.Contains(text, cause) || strings.Contains(fmt.Sprint(fields), token) {
			t.Errorf("the line has the fields %v", fields)
		}
		if id := a.header.Get("Audit-Id"); id == "" || fields["audit-id"] != id {
			t.Errorf("the line is of %v, and the answer of %q", fields["audit-id"], id)
		}
		if got[0].Level != zapcore.InfoLevel || fields["dropped"] != nil {
			t.Errorf("the line is %+v", got[0])
		}

		time.Sleep(time.Second)
		get("long")
		if got := lines(); len(got) != 1 || len(fmt.Sprint(got[0].ContextMap()["error"])) > 2<<10 {
			t.Errorf("%d lines about a long cause, or one that is long, too", len(got))
		}

		time.Sleep(time.Second)
		for range 25 {
			get(token)
		}
		if got := lines(); len(got) != 10 {
			t.Errorf("%d lines about 25 requests of one second", len(got))
		}
		time.Sleep(time.Second)
		get(token)
		get(token)
		if got := lines(); len(got) != 2 || got[0].ContextMap()["dropped"] != int64(15) || got[1].ContextMap()["dropped"] != nil {
			t.Errorf("the lines of the next second are %+v; the first should tell of 15 that are missing", got)
		}
		// A request without a credential is refused by the authorizer, and is not logged here.
		if code, body := tryCall(t, srv.Anonymous(), "GET", srv.URL+widgetsPath, ""); code != http.StatusForbidden || len(lines()) != 0 {
			t.Errorf("somebody without a credential: %d %s, or a line about it", code, body)
		}
	})
}

// The line about a 401 names the authenticators that have refused the credential, and has no part of it.
func TestTheLogNamesTheAuthenticatorsOfA401(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.DebugLevel)
	srv := servertest.Start(t, server.Options{
		Policy: server.Policy{
			Users: map[string]authn.User{"a": {Name: "a"}},
			Authenticator: authn.Func(func(r *http.Request) (*authn.Response, error) {
				if r.Header.Get("X-Badge") != "" {
					return nil, errors.New("no such badge")
				}
				return nil, nil
			}),
		},
		Observe: server.Observe{Logger: zap.New(core)},
	})
	hook := tokensOf(func(token string) (*authn.Response, error) {
		if token == "s3cret-boom" {
			return nil, errors.New("the issuer is down")
		}
		return nil, nil
	})
	h := host(t, srv)
	passwords := authn.BasicAuth([]authn.Password{{Password: "right", User: authn.User{Name: "joe"}}})
	for name, a := range map[string]authn.Authenticator{
		authn.TokenFile: authn.BearerToken(authn.StaticTokens(nil)), authn.TokenWebhook: authn.BearerToken(hook), "passwords": passwords,
	} {
		if err := h.Authenticate(name, a); err != nil {
			t.Fatal(err)
		}
	}
	const own = "Policy.Users: invalid bearer token\nadministrator: invalid bearer token\n"
	for _, c := range []struct{ name, value, want string }{
		{"Authorization", "Bearer s3cret", own + "token-file, webhook: invalid bearer token"},
		{"Authorization", "Bearer s3cret-boom", own + "webhook: the issuer is down"},
		{"Authorization", "Basic am9lOnMzY3JldA==", "passwords: wrong name or password"},
		{"X-Badge", "s3cret", "Policy.Authenticator: no such badge"},
	} {
		a := roundTrip(t, srv.Anonymous(), "GET", srv.URL+"/version", "", c.name, c.value)
		wantCode(t, http.StatusUnauthorized, a.code, a.body)
		lines := slices.DeleteFunc(logs.TakeAll(), func(e observer.LoggedEntry) bool { return e.Message != "unable to authenticate the request" })
		if len(lines) != 1 || lines[0].ContextMap()["error"] != c.want {
			t.Errorf("%s: %d lines: %v, want %q", c.value, len(lines), lines, c.want)
		}
		for _, text := range []string{fmt.Sprint(lines), fmt.Sprint(a.header, a.body)} {
			if strings.Contains(text, "s3cret") || strings.Contains(text, "am9l") {
				t.Errorf("%s: the credential is in %s", c.value, text)
			}
		}
		if text := fmt.Sprint(a.header, a.body); strings.Contains(text, "webhook") || strings.Contains(text, "Policy") {
			t.Errorf("the answer names authenticators: %s", text)
		}
	}
}

// tokensOf is a function that authenticates tokens.
type tokensOf func(token string) (*authn.Response, error)

func (f tokensOf) AuthenticateToken(_ context.Context, token string) (*authn.Response, error) {
	return f(token)
}

// No handler sees the headers of a proxy, also if WrapAuthenticator returns an authenticator that says nothing about headers.
func TestHeadersOfProxiesAreRemovedUnderAWrapper(t *testing.T) {
	t.Parallel()
	proxy := func(header string) authn.Authenticator {
		p, err := authn.AuthenticatingProxy(authn.ProxyOptions{Roots: func() *x509.CertPool { return nil }, User: []string{header}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	seen := make(chan http.Header, 1)
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Policy.Authenticator = proxy("X-Own-User")
	o.Policy.WrapAuthenticator = func(own authn.Authenticator) authn.Authenticator { return authn.Func(own.Authenticate) }
	o.Serving.Filters = func(l []server.NamedFilter) []server.NamedFilter {
		return server.InsertAfter(l, server.FilterMetrics, server.NamedFilter{Name: "see", Filter: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen <- r.Header.Clone()
				next.ServeHTTP(w, r)
			})
		}})
	}
	srv, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	member := server.ExtensionFunc(func(h *server.Host) error { return h.Authenticate(authn.RequestHeader, proxy("X-Member-User")) })
	if err := srv.Install(member); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", widgetsPath, http.NoBody)
	r.Header = http.Header{
		"Authorization": {"Bearer " + srv.Credentials().Token},
		"X-Own-User":    {"a"}, "X-Member-User": {"b"}, "X-Kept": {"c"},
	}
	w := httptest.NewRecorder()
	srv.Handler().ServeHTTP(w, r)
	wantCode(t, http.StatusOK, w.Code, w.Body.String())
	h := <-seen
	if h.Get("X-Own-User") != "" || h.Get("X-Member-User") != "" || h.Get("X-Kept") != "c" {
		t.Errorf("the handler sees %v", h)
	}
}
