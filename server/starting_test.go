package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
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
	eventually(t, "the server is ready", func() bool { return ask(unknown[0]).Code == 404 })
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

// A request to a mounted server makes no checks and does not wait for them, and CheckReady changes nothing.
func TestRequestsDoNotCheckReadiness(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	began, release := make(chan struct{}, 1), make(chan struct{})
	o := server.Options{}
	o.Observe.Checks = []server.Check{{Name: "slow", ReadyOnly: true, Check: func(context.Context) error {
		if asked.Add(1) == 1 {
			began <- struct{}{}
			<-release
		}
		return nil
	}}}
	srv, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	defer close(release)
	h := srv.Handler()
	select {
	case <-began:
	case <-time.After(5 * time.Second):
		t.Error("nothing makes the checks")
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range 3 {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/version", http.NoBody))
		}
	}()
	select {
	case <-over:
	case <-time.After(20 * time.Second):
		t.Fatal("the requests wait for the checks")
	}
	if got := asked.Load(); got != 1 {
		t.Errorf("the checks were made %d times, want 1", got)
	}
	if err := srv.CheckReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/nothing", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+srv.Credentials().Token)
	if h.ServeHTTP(w, r); w.Code != 503 {
		t.Errorf("after CheckReady: %d %s", w.Code, w.Body)
	}
}

// The log has a reason once, as long as it stays the same.
func TestTheLogHasAReasonOnce(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.WarnLevel)
	var asked atomic.Int64
	o := server.Options{}
	o.Observe.Logger = zap.New(core)
	o.Observe.Checks = []server.Check{{Name: "definitions", ReadyOnly: true, Check: func(context.Context) error {
		switch n := asked.Add(1); {
		case n <= 9:
			return errors.New("not loaded")
		case n <= 10:
			return errors.New("not sorted")
		}
		return nil
	}}}
	run(t, o)
	var got []string
	for _, line := range logs.FilterMessage("not ready yet").All() {
		got = append(got, fmt.Sprint(line.ContextMap()["error"]))
	}
	if want := []string{"definitions: not loaded", "definitions: not sorted"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
