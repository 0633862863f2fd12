package authz_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
)

// explained is an authorizer with an explanation.
type explained authz.Explanation

func (s explained) Authorize(context.Context, authz.Attributes) (authz.Verdict, string, error) {
	return s.Verdict, s.Reason, s.Err
}

func (s explained) Explain(context.Context, authz.Attributes) authz.Explanation {
	return authz.Explanation(s)
}

func (s explained) SubjectsFor(_ context.Context, _ authz.Attributes, limit int) authz.Subjects {
	if s.Grant == nil || limit == 0 {
		return authz.Subjects{Incomplete: s.Grant != nil}
	}
	return authz.Subjects{Grants: []authz.Grant{*s.Grant}}
}

func grant(role, subject string) *authz.Grant {
	return &authz.Grant{Role: &authz.Object{Kind: "Role", Name: role}, Subject: &authz.Object{Kind: "Group", Name: subject}}
}

// inner returns a Live with one member.
func inner(t *testing.T, a authz.Authorizer) *authz.Live {
	t.Helper()
	l := &authz.Live{}
	if err := l.Set("inner", a); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestExplain(t *testing.T) {
	broken := errors.New("broken")
	plain := authz.Func(func(context.Context, authz.Attributes) (authz.Verdict, string, error) {
		return authz.NoOpinion, "no", broken
	})
	near := explained{Reason: "near", Nearest: []authz.Grant{*grant("1", "a"), *grant("2", "a"), *grant("3", "a")}}
	yes := explained{Verdict: authz.Allow, Reason: "yes", Grant: grant("r", "g")}
	for _, test := range []struct {
		name    string
		members map[string]authz.Authorizer
		order   string
		want    string
		reason  string
		err     error
	}{
		{"nobody", nil, "", `{}`, "", nil},
		{"the one who allows", map[string]authz.Authorizer{"a": plain, "b": yes, "c": near}, "abc", `{"authorizer":"b","grant":{"role":{"kind":"Role","name":"r"},"subject":{"kind":"Group","name":"g"}}}`, "yes", nil},
		{"behind a group", map[string]authz.Authorizer{"a": authz.ForGroup("members", yes)}, "a", `{"authorizer":"a","grant":{"role":{"kind":"Role","name":"r"},"subject":{"kind":"Group","name":"g"}}}`, "yes", nil},
		{"observed", map[string]authz.Authorizer{"a": authz.Observed(yes, func(authz.Verdict) {})}, "a", `{"authorizer":"a","grant":{"role":{"kind":"Role","name":"r"},"subject":{"kind":"Group","name":"g"}}}`, "yes", nil},
		{"a member of a member", map[string]authz.Authorizer{"a": inner(t, yes)}, "a", `{"authorizer":"inner","grant":{"role":{"kind":"Role","name":"r"},"subject":{"kind":"Group","name":"g"}}}`, "yes", nil},
		{"behind another group", map[string]authz.Authorizer{"a": authz.ForGroup("others", yes)}, "a", `{}`, "", nil},
		{"without a name in reasons", map[string]authz.Authorizer{"a": authz.Plain{Authorizer: near}}, "a", `1 2 3`, "near", nil},
		{"of all members", map[string]authz.Authorizer{"a": near, "b": plain, "c": near}, "abc", `1 2 3 1 2`, "a: near\nb: no\nc: near", broken},
		{"a refusal", map[string]authz.Authorizer{"a": near, "b": explained{Verdict: authz.Deny, Reason: "never"}, "c": yes}, "abc", `{"authorizer":"b"}`, "never", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var l authz.Live
			for _, name := range strings.Split(test.order, "") {
				if name == "" {
					continue
				}
				if err := l.Set(name, test.members[name]); err != nil {
					t.Fatal(err)
				}
			}
			asked := authz.Attributes{User: &authn.User{Name: "joe", Groups: []string{"members"}}, Verb: "get", Path: "/x"}
			e := authz.Explain(t.Context(), &l, asked)
			verdict, reason, err := l.Authorize(t.Context(), asked)
			if e.Verdict != verdict || e.Reason != reason || e.Reason != test.reason || !errors.Is(e.Err, test.err) || (err == nil) != (e.Err == nil) {
				t.Errorf("%v %q %v; Authorize has %v %q %v", e.Verdict, e.Reason, e.Err, verdict, reason, err)
			}
			got := e.Line(1 << 10)
			if len(e.Nearest) > 0 {
				var names []string
				for _, g := range e.Nearest {
					names = append(names, g.Role.Name)
				}
				got = strings.Join(names, " ")
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestExplanationsAreBounded checks that a line is never longer than its limit, and has what fits.
func TestExplanationsAreBounded(t *testing.T) {
	long := grant("r", "g")
	long.Rule = &authz.ResourceRule{Verbs: []string{"get"}, ResourceNames: []string{strings.Repeat("x", 500)}}
	e := authz.Explanation{Authorizer: "rbac", Grant: long, Nearest: []authz.Grant{*grant("1", "a"), *grant("2", "a")}}
	for limit, want := range map[int]string{
		2000: `"name":"2"`, 740: `"name":"1"`, 660: "xxx", 200: `"subject"`, 30: `{"authorizer":"rbac"}`, 5: "{}",
	} {
		if got := e.Line(limit); len(got) > limit || !strings.Contains(got, want) {
			t.Errorf("%d bytes: %s (%d): want %s", limit, got, len(got), want)
		}
	}
	if e.Grant.Rule == nil || len(e.Nearest) != 2 {
		t.Error("Line changed the explanation")
	}
}

func TestSubjectsOf(t *testing.T) {
	asked := authz.Attributes{Verb: "get", Path: "/healthz"}
	var l authz.Live
	for name, a := range map[string]authz.Authorizer{"rules": authz.Union(
		authz.Masters(),
		authz.AllowPaths("/healthz"),
		authz.AllowPaths("/readyz"),
		authz.ForGroup("devs", authz.AllowPaths("/healthz")),
		authz.Plain{Authorizer: authz.Observed(explained{Grant: grant("r", "g")}, func(authz.Verdict) {})},
	)} {
		if err := l.Set(name, a); err != nil {
			t.Fatal(err)
		}
	}
	names := func(s authz.Subjects) (all []string) {
		for _, g := range s.Grants {
			all = append(all, g.Subject.Name)
		}
		return all
	}
	all := authz.SubjectsOf(t.Context(), &l, asked, 100)
	if diff := cmp.Diff([]string{"system:masters", "system:authenticated", "system:unauthenticated", "devs", "g"}, names(all)); diff != "" {
		t.Error(diff)
	}
	if !all.Incomplete { // anonymous users may be members of devs, for all that ForGroup knows
		t.Error("complete")
	}
	for limit := range 5 {
		if some := authz.SubjectsOf(t.Context(), &l, asked, limit); len(some.Grants) != limit || !some.Incomplete {
			t.Errorf("at most %d: %v, incomplete %v", limit, names(some), some.Incomplete)
		}
	}
	for name, test := range map[string]struct {
		a          authz.Authorizer
		want       int
		incomplete bool
	}{
		"nobody":        {authz.AlwaysDeny(), 0, false},
		"everybody":     {authz.AlwaysAllow(), 2, false},
		"not known":     {authz.Func(nil), 0, true},
		"other members": {authz.ForGroup("devs", explained{Grant: grant("r", "g")}), 0, true},
		"authenticated": {authz.ForGroup("devs", authz.PrivilegedGroups(authn.AuthenticatedAll)), 1, false},
		"anonymous":     {authz.ForGroup(authn.UnauthenticatedAll, authz.PrivilegedGroups(authn.AuthenticatedAll)), 0, true},
	} {
		if got := authz.SubjectsOf(t.Context(), test.a, asked, 10); len(got.Grants) != test.want || got.Incomplete != test.incomplete {
			t.Errorf("%s: %v, incomplete %v", name, names(got), got.Incomplete)
		}
	}
}
