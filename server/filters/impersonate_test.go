package filters_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/filters"
)

func TestRefuseImpersonation(t *testing.T) {
	for _, tc := range []struct {
		name, value string
		code        int
		want        string
	}{
		{"Accept", "application/json", 200, ""},
		{"Impersonate-User", "alice", 403, `users \"alice\" is forbidden: User \"root\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope`},
		{"impersonate-user", "alice", 403, `users \"alice\" is forbidden`},
		{"Impersonate-User", "", 400, "without impersonating a user name"},
		{"Impersonate-Group", "developers", 400, "without impersonating a user name"},
		{"Impersonate-Uid", "1", 400, "without impersonating a user name"},
		{"Impersonate-Extra-Scopes", "view", 400, "without impersonating a user name"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/api", nil)
		r.Header.Set(tc.name, tc.value)
		r = r.WithContext(authn.WithUser(r.Context(), &authn.User{Name: "root", Groups: []string{"system:masters"}}))
		w := httptest.NewRecorder()
		filters.Chain(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), filters.RefuseImpersonation()).ServeHTTP(w, r)
		if long := strings.Repeat("<", 900_000); tc.code == 403 { // the answer quotes the beginning
			r.Header.Set(tc.name, long)
			w := httptest.NewRecorder()
			filters.Chain(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), filters.RefuseImpersonation()).ServeHTTP(w, r)
			if n := w.Body.Len(); w.Code != 403 || n > 64<<10 || !strings.Contains(w.Body.String(), "... (truncated, 900000 bytes in all)") {
				t.Errorf("%s: %d, %d bytes, %.300s", tc.name, w.Code, n, w.Body)
			}
		}
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s: %s: %d %s", tc.name, tc.value, w.Code, w.Body)
		}
	}
}
