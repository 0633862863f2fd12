package filters_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/filters"
)

// Large headers and URLs are counted for the authenticated user until the request ends. Small ones are not counted.
func TestHeaderBytesAreCounted(t *testing.T) {
	byHeader := authn.Func(func(r *http.Request) (*authn.Response, error) {
		return &authn.Response{User: authn.User{Name: r.Header.Get("User")}}, nil
	})
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 3 << 20, User: 2 << 20, Address: -1})
	entered, leave := make(chan int64), make(chan struct{})
	var rejected int
	h := filters.Chain(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- budget.Held()
		<-leave
	}), filters.Authenticate(byHeader, filters.AuthenticateOptions{}), filters.HeaderBytes(budget, func(*http.Request) { rejected++ }))
	ask := func(user string, size, fields int, url string) (*httptest.ResponseRecorder, func()) {
		r := httptest.NewRequest("GET", url, nil)
		r.Header.Set("User", user)
		for i := range fields {
			r.Header.Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", size/fields))
		}
		w, ended := httptest.NewRecorder(), make(chan struct{})
		go func() { defer close(ended); h.ServeHTTP(w, r) }()
		return w, func() { <-ended }
	}
	within := func(what string, got, least, most int64) {
		t.Helper()
		if got < least || got > most {
			t.Errorf("%s: %d bytes are counted, want %d to %d", what, got, least, most)
		}
	}
	var ends []func()
	begin := func(user string, size, fields int, url string) int64 {
		_, end := ask(user, size, fields, url)
		ends = append(ends, end)
		return <-entered
	}
	within("a small header", begin("anna", 12<<10, 10, "/"), 0, 0)
	within("a large header", begin("anna", 1<<20, 100, "/"), 1<<20, 1<<20+10<<10)
	within("with a long URL", begin("anna", 1, 1, "/"+strings.Repeat("x", 100<<10)), 1<<20+100<<10, 1<<20+400<<10)
	for name, want := range map[string]string{"anna": "too many bytes of user", "bob": ""} {
		if want == "" {
			within("of another user", begin(name, 1<<20, 1, "/"), 2<<20, 3<<20)
			continue
		}
		w, end := ask(name, 1<<20, 1, "/")
		if end(); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"reason":"TooManyRequests"`) {
			t.Errorf("%s: %d %v %s, want %s", name, w.Code, w.Header(), w.Body, want)
		}
	}
	close(leave)
	for _, end := range ends {
		end()
	}
	within("in the end", budget.Held(), 0, 0)
	if rejected != 1 {
		t.Errorf("%d requests are reported as rejected", rejected)
	}
}
