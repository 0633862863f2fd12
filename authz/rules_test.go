package authz_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	authorizationv1 "k8s.io/api/authorization/v1"
)

func TestRulesFor(t *testing.T) {
	silent := authz.Func(func(context.Context, authz.Attributes) (authz.Verdict, string, error) {
		return authz.NoOpinion, "", nil
	})
	all := authz.Union(
		authz.Masters(),
		authz.AllowPaths("/healthz", "/livez/*"),
		authz.ForGroup(authn.AuthenticatedAll, authz.AllowPaths("/apis")),
	)
	everything := authz.Rules{
		Resources: []authz.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
		Paths:     []authz.PathRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
	}
	public := authz.PathRule{Verbs: []string{"get", "head"}, NonResourceURLs: []string{"/healthz", "/livez/*"}}
	discovery := authz.PathRule{Verbs: []string{"get", "head"}, NonResourceURLs: []string{"/apis"}}
	for _, tc := range []struct {
		name   string
		who    authz.Authorizer
		groups []string
		want   authz.Rules
		err    string
	}{
		{"nobody in particular", all, nil, authz.Rules{Paths: []authz.PathRule{public}}, ""},
		{"authenticated", all, []string{authn.AuthenticatedAll}, authz.Rules{Paths: []authz.PathRule{public, discovery}}, ""},
		{"masters", all, []string{authn.MastersGroup}, authz.Rules{
			Resources: everything.Resources, Paths: append(everything.Paths[:1:1], public),
		}, ""},
		{"always", authz.AlwaysAllow(), nil, everything, ""},
		{"never", authz.AlwaysDeny(), nil, authz.Rules{}, ""},
		{"one that cannot tell", authz.Union(silent, authz.AllowPaths("/apis")), nil,
			authz.Rules{Paths: []authz.PathRule{discovery}, Incomplete: true}, "an authorizer does not support user rule resolution"},
	} {
		got, err := authz.RulesOf(t.Context(), tc.who, &authn.User{Name: "u", Groups: tc.groups}, "ns")
		text := ""
		if err != nil {
			text = err.Error()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || text != tc.err {
			t.Errorf("%s: error %q, want %q\n%s", tc.name, text, tc.err, diff)
		}
	}
}

// The rules convert to those of a SelfSubjectRulesReview.
func TestRulesConvert(t *testing.T) {
	t.Parallel()
	r := authorizationv1.ResourceRule(authz.ResourceRule{Verbs: []string{"get"}, APIGroups: []string{"g"}, Resources: []string{"r"}, ResourceNames: []string{"n"}})
	p := authorizationv1.NonResourceRule(authz.PathRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/x"}})
	if got, want := r.String()+p.String(), "&ResourceRule{Verbs:[get],APIGroups:[g],Resources:[r],ResourceNames:[n],}&NonResourceRule{Verbs:[get],NonResourceURLs:[/x],}"; got != want {
		t.Errorf("the rules are %s, want %s", got, want)
	}
}
