package server_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

// allowing returns an authorizer that allows a user some verbs.
func allowing(user string, verbs ...string) authz.Authorizer {
	return authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
		if a.User.Name == user && slices.Contains(verbs, a.Verb) {
			return authz.Allow, "", nil
		}
		return authz.NoOpinion, "", nil
	})
}

// A request is decided to its end by the policy that was taken at its beginning, also if an apply becomes a create.
func TestPolicyOfARequestStaysForIt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name          string
		before, after authz.Authorizer
		code, next    int // codes of the request during which the policy changes, and of the next
	}{
		{"the right to create ends", allowing("joe", "patch", "create"), allowing("joe", "patch"), 201, 403},
		{"the right to create comes", allowing("joe", "patch"), allowing("joe", "patch", "create"), 403, 201},
		{"all rights end", allowing("joe", "patch", "create"), allowing("nobody"), 201, 403},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var meanwhile func()
			srv := servertest.Start(t, server.Options{Groups: []server.Group{widgets()}, Serving: server.Serving{
				Filters: func(list []server.NamedFilter) []server.NamedFilter {
					return append(list, server.NamedFilter{Name: "meanwhile", Filter: func(next http.Handler) http.Handler {
						return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							if r.Header.Get("X-Meanwhile") != "" {
								meanwhile()
							}
							next.ServeHTTP(w, r)
						})
					}})
				},
			}})
			h := host(t, srv)
			judged := 0
			if err := h.Authorize("m", row.before); err != nil {
				t.Fatal(err)
			}
			meanwhile = func() { // the request is already authorized to patch
				late := admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
					if r.Name == "a" {
						return errors.New("judged")
					}
					judged++
					return nil
				})
				if err := errors.Join(h.Authorize("m", row.after), h.Admit(admission.Plugin{Name: "late", Validator: late})); err != nil {
					t.Error(err)
				}
			}
			joe := srv.ClientOf(srv.AddUser(authn.User{Name: "joe"}))
			apply := func(name string, header ...string) (int, string) {
				return tryCall(t, joe, "PATCH", srv.URL+widgetsPath+"/"+name+"?fieldManager=m",
					`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"`+name+`"}}`,
					append([]string{"Content-Type", "application/apply-patch+yaml"}, header...)...)
			}
			if code, body := apply("a", "X-Meanwhile", "1"); code != row.code || strings.Contains(body, "judged") {
				t.Errorf("%d %s, want %d", code, body, row.code)
			}
			if code, body := apply("b"); code != row.next || (judged == 1) != (row.next == 201) {
				t.Errorf("the next: %d %s, want %d; judged %d times", code, body, row.next, judged)
			}
		})
	}
}
