package filters_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// A client that has gone does not make an answer a failure, so that it is not logged.
func TestLogTellsFailuresThatSomebodySees(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for _, test := range []struct {
		name string
		ctx  context.Context
		code int
		want int
	}{
		{"served", t.Context(), http.StatusOK, 0},
		{"refused", t.Context(), http.StatusNotFound, 0},
		{"failed", t.Context(), http.StatusInternalServerError, 1},
		{"too late", late, http.StatusGatewayTimeout, 1},
		{"given up by the client", gone, http.StatusGatewayTimeout, 0},
	} {
		core, logged := observer.New(zapcore.DebugLevel)
		h := filters.Log(zap.New(core))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.code)
		}))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(test.ctx, "GET", "/apis", http.NoBody))
		if got := logged.Len(); got != test.want {
			t.Errorf("%s: %d lines, want %d: %v", test.name, got, test.want, logged.All())
		}
	}
}

// The error of a failure is in its line, whatever filters are between.
func TestLogTellsTheCause(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	h := filters.Chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response.Error(w, r, errors.New("the sea is rough"))
	}), filters.Log(zap.New(core)), filters.RequestInfo(request.Resolver{}), filters.Deadline(time.Minute), filters.Timeout())
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/apis/a.b/v1/xs", http.NoBody))
	lines := logged.All()
	if len(lines) != 1 || lines[0].ContextMap()["error"] != "the sea is rough" {
		t.Errorf("%v", lines)
	}
}

// A line has at most a few KiB, whatever the client sends.
func TestLogCutsLongTexts(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	long := strings.Repeat("x", 1<<20)
	h := filters.Log(zap.New(core))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response.SetCause(w, errors.New(long))
		w.WriteHeader(http.StatusInternalServerError)
	}))
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/apis?x="+long, http.NoBody)
	r.Header.Set("User-Agent", long)
	h.ServeHTTP(httptest.NewRecorder(), r)
	for _, line := range logged.All() {
		for name, value := range line.ContextMap() {
			if text, ok := value.(string); ok && len(text) > 1<<10 {
				t.Errorf("%s has %d bytes", name, len(text))
			}
		}
	}
	if n := logged.Len(); n != 1 {
		t.Errorf("%d lines, want 1", n)
	}
}
