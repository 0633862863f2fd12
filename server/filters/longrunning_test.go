package filters_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
)

// Long-running requests are counted until they end, for the authenticated user. Other requests are not counted.
func TestLongRunningRequestsAreBounded(t *testing.T) {
	for name, around := range map[string]filters.Filter{"alone": nil, "behind Recover": filters.Recover(nil)} {
		t.Run(name, func(t *testing.T) { boundLongRunning(t, around) })
	}
}

func boundLongRunning(t *testing.T, around filters.Filter) {
	byHeader := authn.Func(func(r *http.Request) (*authn.Response, error) {
		return &authn.Response{User: authn.User{Name: r.Header.Get("User")}}, nil
	})
	budget := flowcontrol.NewBudget("watches", flowcontrol.Bounds{All: 3, User: 2, Address: -1})
	entered, leave := make(chan struct{}), make(chan struct{})
	h := filters.Chain(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis/example.com/v1/widgets" && r.URL.RawQuery == "" {
			return
		}
		entered <- struct{}{}
		<-leave
		if r.Header.Get("Panic") != "" {
			panic(http.ErrAbortHandler)
		}
	}), around, filters.RequestInfo(request.Resolver{}), filters.Authenticate(byHeader, filters.AuthenticateOptions{}), filters.LongRunning(budget))
	ask := func(url string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", url, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		defer func() { _ = recover() }()
		h.ServeHTTP(w, r)
		return w
	}
	const watch, list, logs = "/apis/example.com/v1/widgets?watch=1", "/apis/example.com/v1/widgets", "/api/v1/namespaces/n/pods/p/log"
	begin := func(url string, header ...string) (ended chan struct{}) {
		ended = make(chan struct{})
		go func() { defer close(ended); ask(url, header...) }()
		<-entered
		return ended
	}
	refused := func(want, url string, header ...string) {
		t.Helper()
		w := ask(url, header...)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), want) ||
			!strings.Contains(w.Body.String(), `"reason":"TooManyRequests"`) {
			t.Errorf("%s %v: %d %v %s, want %q", url, header, w.Code, w.Header(), w.Body, want)
		}
	}
	under := []chan struct{}{begin(watch, "User", "a"), begin(logs, "User", "a", "Panic", "1")}
	refused("too many watches of one user: the limit is 2", watch, "User", "a")
	under = append(under, begin(watch, "User", "b"))
	refused("too many watches in all: the limit is 3", logs, "User", "c")
	if w := ask(list, "User", "a"); w.Code != http.StatusOK {
		t.Errorf("a list is answered %d", w.Code)
	}
	if held := budget.Held(); held != 3 {
		t.Errorf("%d are held", held)
	}
	close(leave)
	for _, ended := range under {
		<-ended
	}
	if users, addresses := budget.Holders(); budget.Held() != 0 || users+addresses != 0 {
		t.Errorf("%d are held by %d and %d", budget.Held(), users, addresses)
	}
}

// The number of different header fields of a request is bounded.
func TestHeaderFields(t *testing.T) {
	h := filters.Chain(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), filters.HeaderFields(2))
	for n, want := range []int{200, 200, 200, 431} {
		r := httptest.NewRequest("GET", "/", nil)
		for i := range n {
			r.Header.Set("X"+string(rune('a'+i)), "")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want || want == 431 && !strings.Contains(w.Body.String(), `the request has 3 header fields: limit is 2`) {
			t.Errorf("%d fields: %d %s", n, w.Code, w.Body)
		}
	}
}
