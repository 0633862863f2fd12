package server_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
)

// Users of the options are authenticated beside the administrator and an authenticator of the program.
func TestUsersOfOptions(t *testing.T) {
	t.Parallel()
	users, _, err := authn.ReadTokens(strings.NewReader("token-of-anna,anna,1,\"builders\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	own := authn.BearerToken(authn.StaticTokens(map[string]authn.User{"token-of-root": {Name: "root", Groups: []string{authn.MastersGroup}}}))
	for name, policy := range map[string]server.Policy{
		"administrator":     {Users: users},
		"own authenticator": {Users: users, Authenticator: own},
		"no administrator":  {Users: users, Authenticator: authn.WithAnonymous(own), NoAdministrator: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy.Authorizer = authz.Union(authz.ForGroup("builders", authz.AlwaysAllow()), server.DefaultRules())
			srv, err := server.New(server.Options{Groups: []server.Group{widgets()}, Policy: policy})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = srv.Close() }()
			codes := map[string]int{"token-of-anna": 200, "token-of-root": 401, srv.Credentials().Token: 200, "token-of-nobody": 401}
			if policy.Authenticator != nil {
				codes["token-of-root"] = 200
			}
			if policy.NoAdministrator {
				codes[srv.Credentials().Token] = 401
			}
			r := httptest.NewRequest("GET", "/readyz", nil)
			r.Header.Set("Authorization", "Bearer token-of-anna")
			w := httptest.NewRecorder()
			if srv.Handler().ServeHTTP(w, r); w.Code != 200 {
				t.Errorf("/readyz: %d", w.Code)
			}
			for token, want := range codes {
				r := httptest.NewRequest("GET", widgetsPath, nil)
				r.Header.Set("Authorization", "Bearer "+token)
				w := httptest.NewRecorder()
				if srv.Handler().ServeHTTP(w, r); w.Code != want {
					t.Errorf("%s: %d, want %d", token, w.Code, want)
				}
			}
		})
	}
}
