package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

// The limit of selectors applies to every verb that has them, and to authorization by them.
func TestSelectorsAreBounded(t *testing.T) {
	t.Parallel()
	var asked authz.Attributes
	srv := servertest.Start(t, server.Options{
		Groups: []server.Group{widgets()},
		Limits: server.Limits{MaxSelectorRequirements: 3},
		Policy: server.Policy{Authorizer: authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
			if strings.HasPrefix(a.Path, widgetsPath) {
				asked = a
			}
			return authz.Allow, "", nil
		})},
	})
	names := func(n int) string { return "metadata.name%3Da" + strings.Repeat(",metadata.name!%3Db", n-1) }
	tooLarge := func(what string) string {
		return fmt.Sprintf("the %s selector is too large: it has 4 requirements, and at most 3 are allowed", what)
	}
	for _, c := range []struct {
		method, query string
		refused       string // "": not refused
	}{
		{"GET", "labelSelector=a,b,c", ""},
		{"GET", "labelSelector=a,b,c,d", tooLarge("label")},
		{"GET", "labelSelector=a+in+(x,y,z)", ""},
		{"GET", "fieldSelector=" + names(3), ""},
		{"GET", "fieldSelector=" + names(4), tooLarge("field")},
		{"GET", "watch=1&timeoutSeconds=1&fieldSelector=" + names(4), tooLarge("field")},
		{"DELETE", "fieldSelector=" + names(3), ""},
		{"DELETE", "labelSelector=a,b,c,d", tooLarge("label")},
	} {
		code, body := call(t, srv.Client(), c.method, srv.URL+widgetsPath+"?"+c.query, "")
		want := 200
		if c.refused != "" {
			want = 400
		}
		if code != want || c.refused != "" && (!strings.Contains(body, c.refused) || !strings.Contains(body, `"reason":"BadRequest"`)) {
			t.Errorf("%s %s is answered %d %s, want %d %s", c.method, c.query, code, body, want, c.refused)
		}
		if fields := strings.Contains(c.query, "fieldSelector"); fields && (len(asked.FieldSelector) == 3) != (c.refused == "") || c.refused != "" && asked.Name != "" {
			t.Errorf("%s %s is authorized by the name %q and %v", c.method, c.query, asked.Name, asked.FieldSelector)
		}
	}
}
