package filters_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
)

func TestImpersonate(t *testing.T) {
	mayBeAlice := authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
		switch {
		case a.User.Name == "broken", a.User.Name == "half" && a.Verb != "impersonate":
			return authz.NoOpinion, "", errors.New("no answer")
		case a.User.Name == "half":
			return authz.Allow, "", nil
		case a.User.InGroup("system:masters") && (a.Resource != "users" || a.Name == "alice"):
			return authz.Allow, "", nil
		}
		return authz.NoOpinion, "", nil
	})
	root := &authn.User{Name: "root", Groups: []string{"system:masters"}}
	type result struct {
		code int
		body string // part of the body
		user *authn.User
	}
	for name, test := range map[string]struct {
		user    *authn.User
		headers http.Header
		want    result
	}{
		"no headers":       {root, http.Header{"Accept": {"a"}}, result{200, "", root}},
		"a user":           {root, http.Header{"Impersonate-User": {"alice"}}, result{200, "", &authn.User{Name: "alice", Groups: []string{"system:authenticated"}}}},
		"no name":          {root, http.Header{"Impersonate-User": {""}}, result{200, "", root}},
		"another header":   {root, http.Header{"Impersonate-Other": {"x"}}, result{200, "", root}},
		"another user":     {root, http.Header{"Impersonate-User": {"bob"}}, result{403, `users.authentication.k8s.io \"bob\" is forbidden: User \"root\" cannot impersonate:user-info resource \"users\"`, nil}},
		"without rights":   {&authn.User{Name: "eve"}, http.Header{"Impersonate-User": {"alice"}}, result{403, `User \"eve\" cannot impersonate-on:user-info:list resource \"widgets\"`, nil}},
		"without a user":   {nil, http.Header{"Impersonate-User": {"alice"}}, result{403, `User \"\" cannot impersonate-on`, nil}},
		"broken":           {&authn.User{Name: "broken"}, http.Header{"Impersonate-User": {"alice"}}, result{500, "no answer", nil}},
		"broken, one mode": {&authn.User{Name: "half"}, http.Header{"Impersonate-User": {"alice"}}, result{200, "", &authn.User{Name: "alice", Groups: []string{"system:authenticated"}}}},
		"too many groups":  {root, http.Header{"Impersonate-User": {"alice"}, "Impersonate-Group": make([]string, 1001)}, result{400, "1001 groups and values of extra attributes; at most 1000 are allowed", nil}},
		"a group alone":    {root, http.Header{"Impersonate-Group": {"g"}}, result{400, "without impersonating a user name", nil}},
		"a UID alone":      {root, http.Header{"Impersonate-Uid": {"1"}}, result{400, "without impersonating a user name", nil}},
		"an extra alone":   {root, http.Header{"Impersonate-Extra-Scopes": {"view"}}, result{400, "without impersonating a user name", nil}},
		"a very long one":  {root, http.Header{"Impersonate-User": {strings.Repeat("<", 900_000)}}, result{403, "... (truncated, 900000 bytes in all)", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/apis/example.com/v1/widgets", nil)
			r.Header = test.headers
			if test.user != nil {
				r = r.WithContext(authn.WithUser(r.Context(), test.user))
			}
			w := httptest.NewRecorder()
			var got *authn.User
			filters.Chain(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = authn.UserFrom(r.Context())
				for name := range r.Header {
					if name != "Accept" && name != "Impersonate-Other" {
						t.Errorf("the handler sees %s", name)
					}
				}
			}), filters.RequestInfo(request.Resolver{}), filters.Impersonate(mayBeAlice)).ServeHTTP(w, r)
			if diff := cmp.Diff(test.want.user, got); diff != "" || w.Code != test.want.code || !strings.Contains(w.Body.String(), test.want.body) || w.Body.Len() > 64<<10 {
				t.Errorf("%d %.500s, user %s", w.Code, w.Body, diff)
			}
		})
	}
}
