package authn_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
)

func knows(name string, groups ...string) authn.Authenticator {
	return authn.Func(func(*http.Request) (*authn.Response, error) {
		return &authn.Response{User: authn.User{Name: name, Groups: groups}}, nil
	})
}

func fails(text string) authn.Authenticator {
	return authn.Func(func(*http.Request) (*authn.Response, error) { return nil, errors.New(text) })
}

var silent = authn.Func(func(*http.Request) (*authn.Response, error) { return nil, nil })

// result is "user", "error: text" or "no opinion".
func result(a authn.Authenticator, r *http.Request) string {
	resp, err := a.Authenticate(r)
	switch {
	case resp != nil && err != nil:
		return "both"
	case err != nil:
		return "error: " + err.Error()
	case resp == nil:
		return "no opinion"
	}
	return resp.User.Name
}

func TestUnion(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, tc := range []struct {
		name    string
		members []authn.Authenticator
		want    string
	}{
		{"empty", nil, "no opinion"},
		{"silent", []authn.Authenticator{silent, silent}, "no opinion"},
		{"first wins", []authn.Authenticator{silent, knows("a"), knows("b")}, "a"},
		{"success after an error", []authn.Authenticator{fails("x"), knows("a")}, "a"},
		{"errors are remembered", []authn.Authenticator{fails("x"), silent, fails("y")}, "error: x\ny"},
	} {
		if got := result(authn.Union(tc.members...), r); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// If a token is accepted after refusals with annotations, the response has them. The first value of a key stays.
func TestRefusal(t *testing.T) {
	refuses := func(more map[string]string) authn.TokenAuthenticator {
		return tokenFunc(func(context.Context, string) (*authn.Response, error) {
			return nil, fmt.Errorf("of a name: %w", &authn.RefusalError{Err: errors.New("x"), AuditAnnotations: more})
		})
	}
	kept := &authn.Response{User: authn.User{Name: "u"}, AuditAnnotations: map[string]string{"a": "last", "c": "3"}}
	accepts := tokenFunc(func(context.Context, string) (*authn.Response, error) { return kept, nil })
	resp, err := authn.UnionTokens(refuses(map[string]string{"a": "first"}), refuses(map[string]string{"a": "second", "b": "2"}), accepts).AuthenticateToken(t.Context(), "t")
	if err != nil || !maps.Equal(resp.AuditAnnotations, map[string]string{"a": "first", "b": "2", "c": "3"}) || resp.User.Name != "u" {
		t.Errorf("%+v, %v", resp, err)
	}
	if len(kept.AuditAnnotations) != 2 {
		t.Errorf("the response of another authenticator was changed: %v", kept.AuditAnnotations)
	}
	if resp, _ := authn.UnionTokens(refuses(nil), accepts).AuthenticateToken(t.Context(), "t"); resp != kept {
		t.Errorf("without annotations: %+v", resp)
	}
	if _, err := authn.UnionTokens(refuses(nil), refuses(nil)).AuthenticateToken(t.Context(), "t"); err == nil || err.Error() != "of a name: x\nof a name: x" {
		t.Errorf("refused by all: %v", err)
	}
}

func TestWithAnonymous(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if got := result(authn.WithAnonymous(fails("x")), r); got != "error: x" {
		t.Errorf("a wrong credential became %s", got)
	}
	if got := result(authn.WithAnonymous(knows("a")), r); got != "a" {
		t.Errorf("a user became %s", got)
	}
	resp, err := authn.WithAnonymous(silent).Authenticate(r)
	if err != nil {
		t.Fatal(err)
	}
	want := authn.User{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}
	if diff := cmp.Diff(want, resp.User); diff != "" {
		t.Error(diff)
	}
}

func TestAuthenticatedGroup(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	shared := make([]string, 1, 4) // has spare capacity: an append in place would be visible
	shared[0] = "dev"
	for _, tc := range []struct {
		in   authn.Authenticator
		want []string
	}{
		{knows("u"), []string{"system:authenticated"}},
		{knows("u", shared...), []string{"dev", "system:authenticated"}},
		{knows("u", "system:authenticated", "x"), []string{"system:authenticated", "x"}},
		{knows("u", "system:unauthenticated"), []string{"system:unauthenticated"}},
		{knows("system:anonymous"), nil},
	} {
		resp, err := authn.AuthenticatedGroup(tc.in).Authenticate(r)
		if err != nil || !slices.Equal(resp.User.Groups, tc.want) {
			t.Errorf("groups %q, error %v; want %q", resp.User.Groups, err, tc.want)
		}
	}
	if got := shared[:2][1]; got != "" {
		t.Errorf("the authenticator's own groups were changed: %q", got)
	}
	if got := result(authn.AuthenticatedGroup(silent), r); got != "no opinion" {
		t.Error(got)
	}
	if got := result(authn.AuthenticatedGroup(fails("x")), r); got != "error: x" {
		t.Error(got)
	}
}

func TestBearerToken(t *testing.T) {
	tokens := authn.StaticTokens(map[string]authn.User{"s3cret": {Name: "admin"}, "": {Name: "nobody"}})
	a := authn.BearerToken(tokens)
	encoded := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte("s3cret"))
	for _, tc := range []struct{ name, authorization, protocols, want string }{
		{"none", "", "", "no opinion"},
		{"right", "Bearer s3cret", "", "admin"},
		{"scheme in any case", "bEARER s3cret", "", "admin"},
		{"surrounding space", "  Bearer s3cret ", "", "admin"},
		{"wrong", "Bearer other", "", "error: invalid bearer token"},
		{"prefix of it", "Bearer s3cre", "", "error: invalid bearer token"},
		{"other scheme", "Basic s3cret", "", "no opinion"},
		{"no token", "Bearer", "", "no opinion"},
		{"empty token", "Bearer ", "", "no opinion"},
		{"websocket", "", encoded + ", v5.channel.k8s.io", "admin"},
		{"websocket, token only", "", encoded, "error: missing additional subprotocol"},
		{"websocket, two tokens", "", encoded + "," + encoded + ",x", "error: multiple base64.bearer.authorization tokens specified"},
		{"websocket, bad base64", "", "base64url.bearer.authorization.k8s.io.*, x", "error: invalid base64.bearer.authorization token encoding"},
		{"websocket, padded", "", encoded + "==, x", "error: invalid base64.bearer.authorization token encoding"},
		{"websocket, no UTF-8", "", "base64url.bearer.authorization.k8s.io._w, x", "error: invalid base64.bearer.authorization token"},
		{"websocket, no token", "", "v5.channel.k8s.io", "no opinion"},
		{"websocket, wrong", "", "base64url.bearer.authorization.k8s.io.YQ, x", "error: invalid bearer token"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if tc.authorization != "" {
			r.Header.Set("Authorization", tc.authorization)
		}
		if tc.protocols != "" {
			r.Header.Set("Upgrade", "websocket")
			r.Header.Set("Connection", "keep-alive, Upgrade")
			r.Header.Set("Sec-WebSocket-Protocol", tc.protocols)
		}
		if got := result(a, r); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
		r.Header.Del("Upgrade")
		if tc.protocols != "" {
			if got := result(a, r); got != "no opinion" {
				t.Errorf("%s, but no upgrade: %s", tc.name, got)
			}
		}
	}
}

func TestStripCredentials(t *testing.T) {
	h := http.Header{}
	h.Set("Accept", "application/json")
	h.Set("X-Remote-Addr", "kept")
	if got := authn.StripCredentials(h); len(got) != 2 {
		t.Errorf("headers without credentials: %v", got)
	}
	h.Set("Authorization", "Bearer x")
	h.Add("X-Remote-User", "u")
	h.Add("X-Remote-Uid", "1")
	h.Add("X-Remote-Group", "g")
	h.Add("X-Remote-Extra-Scopes", "s")
	h.Add("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.YQ, a")
	h.Add("Sec-WebSocket-Protocol", "b")
	before := h.Clone()
	got := authn.StripCredentials(h)
	want := http.Header{"Accept": {"application/json"}, "X-Remote-Addr": {"kept"}, "Sec-Websocket-Protocol": {"a, b"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, h); diff != "" {
		t.Errorf("the argument was changed: %s", diff)
	}
}

func TestUserContext(t *testing.T) {
	if authn.UserFrom(t.Context()) != nil {
		t.Error("an empty context has a user")
	}
	u := &authn.User{Name: "u", Groups: []string{"a", "b"}}
	if authn.UserFrom(authn.WithUser(t.Context(), u)) != u {
		t.Error("the user is lost")
	}
	if !u.InGroup("b") || u.InGroup("c") || u.InGroup("") || strings.Join(u.Groups, "") != "ab" {
		t.Error("InGroup")
	}
}

func TestWithAnonymousAtPaths(t *testing.T) {
	a := authn.WithAnonymous(silent, "/livez", "/readyz")
	for target, want := range map[string]string{
		"/livez": authn.AnonymousUser, "/readyz?verbose": authn.AnonymousUser, "/livez/": "no opinion", "/livez/etcd": "no opinion", "/": "no opinion", "//livez": "no opinion", "/LIVEZ": "no opinion",
	} {
		if got := result(a, httptest.NewRequest(http.MethodGet, target, nil)); got != want {
			t.Errorf("%s: %s", target, got)
		}
	}
	if got := result(authn.WithAnonymous(fails("x"), "/livez"), httptest.NewRequest(http.MethodGet, "/livez", nil)); got != "error: x" {
		t.Errorf("a wrong credential became %s", got)
	}
}

// Authenticators of fixed users share nothing with the users that they are given.
func TestFixedUsersAreCopied(t *testing.T) {
	own := func() authn.User {
		return authn.User{Name: "jane", UID: "1", Groups: []string{"a"}, Extra: map[string][]string{"k": {"v"}}}
	}
	first, second, third := own(), own(), own()
	tokens := authn.StaticTokens(map[string]authn.User{"token": first})
	passwords := authn.BasicAuth([]authn.Password{{Password: "secret", User: second}})
	clone := third.Clone()
	for _, u := range []authn.User{first, second, third} {
		u.Groups[0], u.Extra["k"][0], u.Extra["more"] = "b", "w", []string{"x"}
	}
	byToken, err := tokens.AuthenticateToken(t.Context(), "token")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", http.NoBody)
	r.SetBasicAuth("jane", "secret")
	byPassword, err := passwords.Authenticate(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, u := range map[string]authn.User{"token": byToken.User, "password": byPassword.User, "clone": *clone} {
		if diff := cmp.Diff(own(), u); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if u := (&authn.User{Name: "x"}).Clone(); u.Groups != nil || u.Extra != nil {
		t.Errorf("%#v", u)
	}
}
