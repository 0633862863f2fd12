package filters_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/keelson-dev/keelson/server/filters"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// No line has the value of a parameter that may be a credential.
func TestLinesHaveNoCredentials(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	log := zap.New(core)
	for name, f := range map[string]struct {
		filter filters.Filter
		h      http.HandlerFunc
	}{
		"a failure": {filters.Log(log), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		"a panic":   {filters.Recover(log), func(http.ResponseWriter, *http.Request) { panic("sea") }},
		"slow":      {filters.Slow(log, 1), func(http.ResponseWriter, *http.Request) {}},
	} {
		f.filter(f.h).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/pods?limit=5&access_token=SECRET", http.NoBody))
		lines := logged.TakeAll()
		if len(lines) != 1 || lines[0].ContextMap()["uri"] != "/api/v1/pods?limit=5&access_token=..." {
			t.Errorf("%s: %v", name, lines)
		}
	}
}
