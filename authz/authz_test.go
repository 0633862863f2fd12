package authz_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func says(v authz.Verdict, reason string, err error) authz.Authorizer {
	return authz.Func(func(context.Context, authz.Attributes) (authz.Verdict, string, error) { return v, reason, err })
}

func TestUnion(t *testing.T) {
	x, y := errors.New("x"), errors.New("y")
	for _, tc := range []struct {
		name    string
		members []authz.Authorizer
		verdict authz.Verdict
		reason  string
		err     string
	}{
		{"empty", nil, authz.NoOpinion, "", ""},
		{"reasons joined", []authz.Authorizer{says(authz.NoOpinion, "a", nil), says(authz.NoOpinion, "", nil), says(authz.NoOpinion, "b", nil)}, authz.NoOpinion, "a\nb", ""},
		{"first allow", []authz.Authorizer{says(authz.NoOpinion, "a", nil), says(authz.Allow, "b", nil), says(authz.Deny, "c", nil)}, authz.Allow, "b", ""},
		{"first deny", []authz.Authorizer{says(authz.NoOpinion, "a", nil), says(authz.Deny, "b", nil), says(authz.Allow, "c", nil)}, authz.Deny, "b", ""},
		{"allow after an error", []authz.Authorizer{says(authz.NoOpinion, "", x), says(authz.Allow, "b", nil)}, authz.Allow, "b", ""},
		{"errors joined", []authz.Authorizer{says(authz.NoOpinion, "", x), says(authz.NoOpinion, "", y)}, authz.NoOpinion, "", "[x, y]"},
		{"equal errors", []authz.Authorizer{says(authz.NoOpinion, "", x), says(authz.NoOpinion, "", x)}, authz.NoOpinion, "", "x"},
		{"deny after an error", []authz.Authorizer{says(authz.NoOpinion, "", x), says(authz.Deny, "b", nil)}, authz.Deny, "b", ""},
	} {
		verdict, reason, err := authz.Union(tc.members...).Authorize(t.Context(), authz.Attributes{})
		text := ""
		if err != nil {
			text = err.Error()
		}
		if verdict != tc.verdict || reason != tc.reason || text != tc.err {
			t.Errorf("%s: %v, %q, %q", tc.name, verdict, reason, text)
		}
	}
}

func TestAlways(t *testing.T) {
	if v, _, _ := authz.AlwaysAllow().Authorize(t.Context(), authz.Attributes{}); v != authz.Allow {
		t.Error("AlwaysAllow does not")
	}
	if v, reason, _ := authz.AlwaysDeny().Authorize(t.Context(), authz.Attributes{}); v != authz.NoOpinion || reason != "Everything is forbidden." {
		t.Error("AlwaysDeny does not")
	}
}

func TestPrivilegedGroups(t *testing.T) {
	for _, tc := range []struct {
		a    authz.Authorizer
		user *authn.User
		want authz.Verdict
	}{
		{authz.PrivilegedGroups("a", "b"), &authn.User{Groups: []string{"x", "b"}}, authz.Allow},
		{authz.PrivilegedGroups("a", "b"), &authn.User{Groups: []string{"x"}}, authz.NoOpinion},
		{authz.PrivilegedGroups(), &authn.User{Groups: []string{"x"}}, authz.NoOpinion},
		{authz.PrivilegedGroups("a"), nil, authz.NoOpinion},
		{authz.Masters(), &authn.User{Groups: []string{"system:masters"}}, authz.Allow},
		{authz.Masters(), &authn.User{Name: "system:masters"}, authz.NoOpinion},
	} {
		if v, _, err := tc.a.Authorize(t.Context(), authz.Attributes{User: tc.user}); v != tc.want || err != nil {
			t.Errorf("%+v: %v, want %v", tc.user, v, tc.want)
		}
	}
}

func TestAllowPaths(t *testing.T) {
	a := authz.AllowPaths("/healthz", "/healthz/*", "/version", "/odd*")
	for _, tc := range []struct {
		verb, path string
		want       authz.Verdict
	}{
		{"get", "/healthz", authz.Allow},
		{"head", "/healthz", authz.Allow},
		{"post", "/healthz", authz.NoOpinion},
		{"get", "/healthz/", authz.Allow},
		{"get", "/healthz/ping", authz.Allow},
		{"get", "/healthz/a/b/", authz.Allow},
		{"get", "/healthz/../secret", authz.NoOpinion},
		{"get", "/healthz/./secret", authz.NoOpinion},
		{"get", "/healthz//secret", authz.NoOpinion},
		{"get", "/healthz/..", authz.NoOpinion},
		{"get", "/healthzz", authz.NoOpinion},
		{"get", "/version", authz.Allow},
		{"get", "/version/", authz.NoOpinion},
		{"get", "/oddity", authz.NoOpinion},
		{"get", "/", authz.NoOpinion},
		{"get", "", authz.NoOpinion},
	} {
		if v, _, err := a.Authorize(t.Context(), authz.Attributes{User: &authn.User{}, Verb: tc.verb, Path: tc.path}); v != tc.want || err != nil {
			t.Errorf("%s %s: %v, want %v", tc.verb, tc.path, v, tc.want)
		}
	}
	if v, _, _ := a.Authorize(t.Context(), authz.Attributes{Verb: "get", Path: "/healthz", ResourceRequest: true}); v != authz.NoOpinion {
		t.Error("a resource was allowed as a path")
	}
}

func TestForbidden(t *testing.T) {
	anonymous := &authn.User{Name: "system:anonymous"}
	for _, tc := range []struct {
		a            authz.Attributes
		reason, want string
	}{
		{authz.Attributes{User: anonymous, Verb: "list", ResourceRequest: true, APIGroup: "example.com", Resource: "widgets", Namespace: "ns"}, "",
			`widgets.example.com is forbidden: User "system:anonymous" cannot list resource "widgets" in API group "example.com" in the namespace "ns"`},
		{authz.Attributes{User: anonymous, Verb: "list", ResourceRequest: true, APIGroup: "example.com", Resource: "widgets"}, "",
			`widgets.example.com is forbidden: User "system:anonymous" cannot list resource "widgets" in API group "example.com" at the cluster scope`},
		{authz.Attributes{User: &authn.User{Name: "u"}, Verb: "get", ResourceRequest: true, Resource: "pods", Subresource: "log", Namespace: "ns", Name: "x"}, "no binding",
			`pods "x" is forbidden: User "u" cannot get resource "pods/log" in API group "" in the namespace "ns": no binding`},
		{authz.Attributes{User: &authn.User{Name: "u"}, Verb: "get", Path: "/x"}, "", `forbidden: User "u" cannot get path "/x"`},
		{authz.Attributes{User: &authn.User{Name: "u"}, Verb: "get", Path: "/<script>&"}, "", `forbidden: User "u" cannot get path "/&lt;script&gt;&amp;"`},
		{authz.Attributes{Verb: "get", Path: "/x"}, "", `forbidden: User "" cannot get path "/x"`},
	} {
		err := authz.Forbidden(tc.a, tc.reason)
		if err.Error() != tc.want || !apierrors.IsForbidden(err) {
			t.Errorf("got  %s\nwant %s", err, tc.want)
		}
		if d := err.Status().Details; d.Group != tc.a.APIGroup || d.Kind != tc.a.Resource || d.Name != tc.a.Name {
			t.Errorf("details %+v", d)
		}
	}
}

func TestTheReasonIsBounded(t *testing.T) {
	for _, tc := range []struct{ reason, want string }{
		{strings.Repeat("a", 1024), strings.Repeat("a", 1024)},
		{strings.Repeat("a", 900_000), strings.Repeat("a", 1021) + "..."},
		{strings.Repeat("é", 900_000), strings.Repeat("é", 510) + "..."},
		{strings.Repeat("\x80", 2000), "..."},
	} {
		a := authz.Attributes{User: &authn.User{Name: "u"}, Verb: "get", Path: "/"}
		got := authz.Forbidden(a, tc.reason).ErrStatus.Message
		if _, reason, _ := strings.Cut(got, `path "/": `); reason != tc.want {
			t.Errorf("%.20q: %d bytes, want %d: %.80q", tc.reason, len(reason), len(tc.want), reason)
		}
	}
}

// TestForbiddenIsShort checks that a refusal shortens long texts of the client, and keeps those of ordinary length.
func TestForbiddenIsShort(t *testing.T) {
	long := strings.Repeat("<", 900_000)
	user := &authn.User{Name: long}
	for _, a := range []authz.Attributes{
		{User: user, Verb: long, Path: long},
		{User: user, Verb: long, ResourceRequest: true, APIGroup: long, Resource: long, Subresource: long, Namespace: long, Name: long},
	} {
		allocated := testing.AllocsPerRun(1, func() { _ = authz.Forbidden(a, long) })
		s := authz.Forbidden(a, long).ErrStatus
		if n := len(s.Message) + len(s.Details.Name) + len(s.Details.Kind) + len(s.Details.Group); n > 64<<10 || !strings.Contains(s.Message, "... (truncated, 900000 bytes in all)") || allocated > 100 {
			t.Errorf("%d bytes, %.200s", n, s.Message)
		}
	}
	path := "/" + strings.Repeat("a", 1000)
	if got, want := authz.Forbidden(authz.Attributes{Verb: "get", Path: path}, "").ErrStatus.Message, `forbidden: User "" cannot get path "`+path+`"`; got != want {
		t.Errorf("%s", got)
	}
}
