package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/server"
)

// Until the server is ready for the first time, a path that is not served is answered with 503, as it may be served soon.
func TestPathsThatAreNotServedYet(t *testing.T) {
	t.Parallel()
	var loaded atomic.Bool
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Observe.Checks = []server.Check{{Name: "definitions", ReadyOnly: true, Check: func(context.Context) error {
		if loaded.Load() {
			return nil
		}
		return errors.New("not loaded")
	}}}
	srv, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	ask := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, http.NoBody)
		r.Header.Set("Authorization", "Bearer "+srv.Credentials().Token)
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, r)
		return w
	}
	unknown := []string{"/apis/none.example.com/v1/xs", "/apis/none.example.com/v1", "/apis/none.example.com", "/apis/example.com/v1/xs", "/nothing"}
	const want = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the request has been made before all known HTTP paths have been installed, please try again",` +
		`"reason":"ServiceUnavailable","details":{"retryAfterSeconds":5},"code":503}` + "\n"
	for _, path := range unknown {
		if w := ask(path); w.Code != 503 || w.Header().Get("Retry-After") != "5" || w.Body.String() != want {
			t.Errorf("%s: %d %s %s", path, w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	}
	if w := ask(widgetsPath + "/none"); w.Code != 404 || !strings.Contains(w.Body.String(), `widgets.example.com \"none\" not found`) {
		t.Errorf("an object that does not exist: %d %s", w.Code, w.Body)
	}
	loaded.Store(true)
	for _, path := range unknown {
		if w := ask(path); w.Code != 404 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	loaded.Store(false) // the server stays whole
	if w := ask(unknown[0]); w.Code != 404 {
		t.Errorf("when it is not ready any more: %d %s", w.Code, w.Body)
	}
}
