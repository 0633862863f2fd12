package filters_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server/filters"
)

func TestWaitGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := filters.NewWaitGroup()
		h := filters.Chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("watch") {
				<-r.Context().Done()
				return
			}
			time.Sleep(time.Minute)
			ok(w, r)
		}), group.Filter())
		get := func(target string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil).WithContext(t.Context()))
			return w
		}
		done := make(chan *httptest.ResponseRecorder, 2)
		go func() { done <- get("/apis/g/v/widgets") }()
		go func() { time.Sleep(30 * time.Second); done <- get("/healthz") }()
		go get("/apis/g/v/widgets?watch=1") // not waited for
		time.Sleep(45 * time.Second)
		start := time.Now()
		group.Close()
		group.Close()
		for _, target := range []string{"/apis/g/v/widgets", "/apis/g/v/widgets?watch=1", "/version"} {
			w := get(target)
			if s := status(t, w.Body); w.Code != 503 || w.Header().Get("Retry-After") != "1" || s.Message != "apiserver is shutting down" || s.Reason != "ServiceUnavailable" {
				t.Errorf("%s: %d %v %+v", target, w.Code, w.Header(), s)
			}
		}
		if err := group.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if waited := time.Since(start); waited != 45*time.Second {
			t.Errorf("waited %v", waited)
		}
		for range 2 {
			if w := <-done; w.Code != 200 || w.Body.String() != "ok" {
				t.Errorf("%d %q", w.Code, w.Body)
			}
		}
		if err := group.Wait(t.Context()); err != nil { // again
			t.Error(err)
		}
		for _, target := range []string{"/readyz", "/livez/ping", "/metrics"} { // they say that the server ends
			if w := get(target); w.Code != 200 {
				t.Errorf("%s: %d %s", target, w.Code, w.Body)
			}
		}
	})
	empty := filters.NewWaitGroup()
	empty.Close()
	if err := empty.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}
