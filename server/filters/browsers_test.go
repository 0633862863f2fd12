package filters_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server/filters"
)

func allowA(origin string) bool { return origin == "https://a.example" }

// The headers are those that kube-apiserver 1.37.1 sends with --cors-allowed-origins.
func TestCORS(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, method, origin string
		allow                func(string) bool
		code                 int
		headers              bool
	}{
		{"allowed", "GET", "https://a.example", allowA, 200, true},
		{"preflight", "OPTIONS", "https://a.example", allowA, 204, true},
		{"another origin", "GET", "https://c.example", allowA, 200, false},
		{"preflight of another origin", "OPTIONS", "https://c.example", allowA, 200, false},
		{"no page", "OPTIONS", "", allowA, 200, false},
		{"a page without an origin", "GET", "null", allowA, 200, false},
		{"nobody allowed", "OPTIONS", "https://a.example", nil, 200, false},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(test.method, "/api", http.NoBody)
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		filters.CORS(test.allow)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		got := w.Header()
		if w.Code != test.code || (len(got) > 0) != test.headers {
			t.Errorf("%s: %d %v", test.name, w.Code, got)
			continue
		}
		if !test.headers {
			continue
		}
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin":      test.origin,
			"Access-Control-Allow-Methods":     "POST, GET, OPTIONS, PUT, DELETE, PATCH",
			"Access-Control-Allow-Headers":     "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
			"Access-Control-Expose-Headers":    "Date",
			"Access-Control-Allow-Credentials": "true",
		} {
			if v := strings.Join(got[name], "|"); v != want {
				t.Errorf("%s: %s: %q", test.name, name, v)
			}
		}
	}
}

func TestHSTS(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		directives []string
		before     string
		want       string
	}{
		{nil, "", ""},
		{[]string{"max-age=31536000", "includeSubDomains"}, "", "max-age=31536000; includeSubDomains"},
		{[]string{"max-age=1"}, "max-age=2", "max-age=2"},
	} {
		w := httptest.NewRecorder()
		if test.before != "" {
			w.Header().Set("Strict-Transport-Security", test.before)
		}
		filters.HSTS(test.directives...)(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", "/", http.NoBody))
		if got := w.Header().Get("Strict-Transport-Security"); got != test.want || w.Code != 404 {
			t.Errorf("%q: %q", test.directives, got)
		}
	}
}

func TestGoAway(t *testing.T) {
	t.Parallel()
	count := func(chance float64, major int) int {
		n := 0
		h := filters.GoAway(chance)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for range 2000 {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", http.NoBody)
			r.ProtoMajor = major
			h.ServeHTTP(w, r)
			if w.Header().Get("Connection") == "close" {
				n++
			}
		}
		return n
	}
	if n := count(0.02, 2); n == 0 || n > 200 {
		t.Errorf("%d of 2000 requests with a chance of 0.02", n)
	}
	if n := count(1, 1) + count(0, 2); n != 0 {
		t.Errorf("%d requests of HTTP/1, or without a chance", n)
	}
}
