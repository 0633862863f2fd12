package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestProxiedRequests checks that a request of a proxy is one of the user in its headers, that a client cannot send such headers, and
// that nothing behind authentication sees them.
func TestProxiedRequests(t *testing.T) {
	t.Parallel()
	authority := newIssuer(t)
	cert := authority.client(t, "front")
	pool := x509.NewCertPool()
	pool.AddCert(authority.cert)
	o := authn.StandardProxy(func() *x509.CertPool { return pool })
	o.User, o.Extra = []string{"My-User"}, []string{"My-Extra-"}
	proxy, err := authn.AuthenticatingProxy(o)
	if err != nil {
		t.Fatal(err)
	}
	seen := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := authn.UserFrom(r.Context())
		_, _ = fmt.Fprint(w, u.Name, u.Groups, u.Extra, " ", r.Header)
	})
	for name, install := range map[string]func(*server.Options) server.ExtensionFunc{
		"of an extension": func(*server.Options) server.ExtensionFunc {
			return func(h *server.Host) error { return h.Authenticate(authn.RequestHeader, proxy) }
		},
		"of the options": func(o *server.Options) server.ExtensionFunc {
			o.Policy.Authenticator = authn.WithAnonymous(authn.Union(proxy), "/livez")
			return func(*server.Host) error { return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var options server.Options
			extension := install(&options)
			srv, err := server.New(options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = srv.Close() })
			if err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
				if err := extension(h); err != nil {
					return err
				}
				return h.Delegate(schema.GroupVersion{Group: "example.com", Version: "v1"}, seen)
			})); err != nil {
				t.Fatal(err)
			}
			for _, test := range []struct {
				certs []*x509.Certificate
				code  int
				want  string
			}{
				{[]*x509.Certificate{cert}, http.StatusOK, "jane[system:masters system:authenticated] map[k:[v]] map[Accept:[x]]"},
				{nil, http.StatusForbidden, ""},
			} {
				r := httptest.NewRequest(http.MethodGet, "/apis/example.com/v1/things", nil)
				r.Header = http.Header{"My-User": {"jane"}, "X-Remote-User": {"eve"}, "X-Remote-Group": {"system:masters"}, "My-Extra-K": {"v"}, "Accept": {"x"}, "Authorization": {""}}
				r.TLS = &tls.ConnectionState{PeerCertificates: test.certs}
				w := httptest.NewRecorder()
				srv.Handler().ServeHTTP(w, r)
				if name == "of the options" && test.certs == nil {
					test.code = http.StatusUnauthorized
				} else if name == "of the options" && test.want != "" {
					test.want = "jane[system:masters] map[k:[v]] map[Accept:[x]]"
				}
				if w.Code != test.code || test.want != "" && w.Body.String() != test.want {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
}

// TestTokensOfTheServerStayInIt checks that the tokens of Policy.Users and of the administrator are not given to the authenticators
// of extensions, of which one may send them to another server.
func TestTokensOfTheServerStayInIt(t *testing.T) {
	t.Parallel()
	srv, err := server.New(server.Options{Policy: server.Policy{Users: map[string]authn.User{"token-of-jane": {Name: "jane"}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	var sent []string
	var tokens authn.TokenAuthenticator
	webhook := tokenFunc(func(token string) { sent = append(sent, token) })
	if err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		if err := h.Authenticate(authn.TokenWebhook, authn.BearerToken(webhook)); err != nil {
			return err
		}
		tokens = h.Tokens()
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"token-of-jane", srv.Credentials().Token, "unknown"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		srv.Handler().ServeHTTP(httptest.NewRecorder(), r)
		if _, err := tokens.AuthenticateToken(t.Context(), token); err != nil {
			t.Error(err)
		}
	}
	if len(sent) == 0 {
		t.Error("the webhook was not asked for an unknown token")
	}
	for _, token := range sent {
		if token != "unknown" {
			t.Errorf("the webhook got a token of the server")
		}
	}
}

// tokenFunc is an authenticator that knows no token. It tells of each.
type tokenFunc func(token string)

// AuthenticateToken implements authn.TokenAuthenticator.
func (f tokenFunc) AuthenticateToken(_ context.Context, token string) (*authn.Response, error) {
	f(token)
	return nil, nil
}
