package server_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

// Default rules are replaced together, whether an extension adds them before or after. Other authorizers stay.
func TestReplaceDefaultRules(t *testing.T) {
	t.Parallel()
	var host *server.Host
	srv := servertest.New(t, server.ExtensionFunc(func(h *server.Host) error {
		host = h
		if err := h.Authorize("example.com/kept", authz.AllowPaths("/livez")); err != nil {
			return err
		}
		return h.AuthorizeByDefault("example.com/default", authz.AllowPaths("/metrics"))
	}))
	user := srv.ClientOf(srv.AddUser(authn.User{Name: "u"}))
	want := func(codes map[string]int) {
		t.Helper()
		for path, code := range codes {
			resp, err := user.Get(srv.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != code {
				t.Errorf("%s: %d, want %d", path, resp.StatusCode, code)
			}
		}
	}
	const ok, no = http.StatusOK, http.StatusForbidden
	want(map[string]int{"/metrics": ok, "/apis": ok, "/healthz": ok, "/livez": ok})
	if err := host.ReplaceDefaultRules(); err != nil {
		t.Fatal(err)
	}
	want(map[string]int{"/metrics": no, "/apis": no, "/healthz": no, "/livez": ok})
	if err := host.AuthorizeByDefault("example.com/late", authz.AllowPaths("/apis")); err != nil {
		t.Fatal(err)
	}
	want(map[string]int{"/apis": no})
	if err := host.AuthorizeByDefault("", nil); err == nil {
		t.Error("an authorizer without a name was accepted")
	}
	resp, err := srv.Client().Get(srv.URL + "/apis")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != ok {
		t.Errorf("the administrator: %d", resp.StatusCode)
	}
}

// TestOwnRulesAreNoDefaults checks that an authorizer of the program stays when the default rules are replaced, and that none of the
// default rules takes its place.
func TestOwnRulesAreNoDefaults(t *testing.T) {
	t.Parallel()
	const twice = "example.com/twice"
	var host *server.Host
	srv := servertest.New(t, server.ExtensionFunc(func(h *server.Host) error {
		host = h
		return errors.Join(
			h.Authorize(server.DefaultAuthorizer, authz.AllowPaths("/healthz")),
			h.AuthorizeByDefault(twice, authz.AllowPaths("/apis")),
			h.Authorize(twice, authz.AllowPaths("/livez")),
			h.AuthorizeByDefault(twice, authz.AllowPaths("/apis")),
		)
	}))
	user := srv.ClientOf(srv.AddUser(authn.User{Name: "u"}))
	want := func(codes map[string]int) {
		t.Helper()
		for path, code := range codes {
			resp, err := user.Get(srv.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			if _ = resp.Body.Close(); resp.StatusCode != code {
				t.Errorf("%s: %d, want %d", path, resp.StatusCode, code)
			}
		}
	}
	const ok, no = http.StatusOK, http.StatusForbidden
	want(map[string]int{"/healthz": ok, "/livez": ok, "/apis": no, "/readyz": no})
	if err := host.ReplaceDefaultRules(); err != nil {
		t.Fatal(err)
	}
	want(map[string]int{"/healthz": ok, "/livez": ok, "/apis": no, "/readyz": no})
	if err := host.RemoveAuthorizer(twice); err != nil {
		t.Fatal(err)
	}
	want(map[string]int{"/livez": no})
}

// TestPolicyAuthorizerHasNoDefaults checks that a program with an authorizer of its own has none of the default rules.
func TestPolicyAuthorizerHasNoDefaults(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{Policy: server.Policy{Authorizer: authz.Union(authz.Masters(), authz.AllowPaths("/livez"))}},
		server.ExtensionFunc(func(h *server.Host) error {
			return h.AuthorizeByDefault("example.com/default", authz.AllowPaths("/metrics"))
		}))
	user := srv.ClientOf(srv.AddUser(authn.User{Name: "u"}))
	for path, code := range map[string]int{"/livez": http.StatusOK, "/metrics": http.StatusForbidden, "/apis": http.StatusForbidden} {
		resp, err := user.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != code {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, code)
		}
	}
}
