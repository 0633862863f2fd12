package filters_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
)

// A request is early if the server was not whole when it came, whatever happens afterwards.
func TestStartingMarksEarlyRequests(t *testing.T) {
	whole := false
	got := map[bool]bool{}
	h := filters.Starting(func() bool { return whole })(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		before := whole
		whole = true
		got[before] = request.IsEarly(r.Context())
	}))
	for range 2 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/x", http.NoBody))
	}
	if !got[false] || got[true] || request.IsEarly(t.Context()) {
		t.Errorf("early: %v", got)
	}
}
