package authz_test

import (
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
)

func TestForGroup(t *testing.T) {
	a := authz.ForGroup("crew", authz.AllowPaths("/deck"))
	for _, tc := range []struct {
		groups []string
		path   string
		want   authz.Verdict
	}{
		{nil, "/deck", authz.NoOpinion},
		{[]string{"passengers"}, "/deck", authz.NoOpinion},
		{[]string{"passengers", "crew"}, "/deck", authz.Allow},
		{[]string{"crew"}, "/hold", authz.NoOpinion},
	} {
		got, _, err := a.Authorize(t.Context(), authz.Attributes{User: &authn.User{Name: "x", Groups: tc.groups}, Verb: "get", Path: tc.path})
		if got != tc.want || err != nil {
			t.Errorf("%v %s: %v, %v", tc.groups, tc.path, got, err)
		}
	}
}
