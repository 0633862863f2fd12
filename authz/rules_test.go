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
		Resources: []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
		Paths:     []authorizationv1.NonResourceRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
	}
	public := authorizationv1.NonResourceRule{Verbs: []string{"get", "head"}, NonResourceURLs: []string{"/healthz", "/livez/*"}}
	discovery := authorizationv1.NonResourceRule{Verbs: []string{"get", "head"}, NonResourceURLs: []string{"/apis"}}
	for _, tc := range []struct {
		name   string
		who    authz.Authorizer
		groups []string
		want   authz.Rules
		err    string
	}{
		{"nobody in particular", all, nil, authz.Rules{Paths: []authorizationv1.NonResourceRule{public}}, ""},
		{"authenticated", all, []string{authn.AuthenticatedAll}, authz.Rules{Paths: []authorizationv1.NonResourceRule{public, discovery}}, ""},
		{"masters", all, []string{authn.MastersGroup}, authz.Rules{
			Resources: everything.Resources, Paths: append(everything.Paths[:1:1], public),
		}, ""},
		{"always", authz.AlwaysAllow(), nil, everything, ""},
		{"never", authz.AlwaysDeny(), nil, authz.Rules{}, ""},
		{"one that cannot tell", authz.Union(silent, authz.AllowPaths("/apis")), nil,
			authz.Rules{Paths: []authorizationv1.NonResourceRule{discovery}, Incomplete: true}, "an authorizer does not support user rule resolution"},
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
