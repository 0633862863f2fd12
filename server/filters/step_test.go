package filters_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
	"go.uber.org/zap"
)

// whole returns a chain of all filters around h.
func whole(h http.Handler) http.Handler {
	tokens := authn.StaticTokens(map[string]authn.User{"s3cret": {Name: "admin", Groups: []string{authn.MastersGroup}}})
	return filters.Chain(h,
		filters.Recover(nil), filters.AuditID(), filters.ReceivedAt(nil), filters.RequestInfo(request.Resolver{}), filters.Log(zap.NewNop()), filters.CacheControl(),
		filters.NewWaitGroup().Filter(), filters.Deadline(0), filters.Timeout(), filters.Warnings(),
		filters.Authenticate(authn.BearerToken(tokens), filters.AuthenticateOptions{}), filters.InFlight(0, 0), filters.Authorize(authz.Masters()))
}

// A request, and the copy of its header without credentials, must not be kept in memory while a watch lasts.
func TestAWatchKeepsNoRequest(t *testing.T) {
	t.Parallel()
	h := whole(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		own := weak.Make(r)
		for range 100 {
			if runtime.GC(); own.Value() == nil {
				return
			}
			time.Sleep(time.Millisecond) // the collector may have seen the request in a register
		}
		t.Error("the request is kept")
	}))
	r := httptest.NewRequest(http.MethodGet, "/apis/example.com/v1/namespaces/ns/widgets?watch=1", nil)
	r.Header.Set("Authorization", "Bearer s3cret")
	h.ServeHTTP(httptest.NewRecorder(), r)
}

// A function of Recover that is called for an aborted watch gets the request, though the request is not kept.
func TestAnAbortedWatchIsReported(t *testing.T) {
	t.Parallel()
	var got *http.Request
	h := filters.Chain(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		filters.Recover(nil, func(r *http.Request) { got = r }), filters.RequestInfo(request.Resolver{}))
	defer func() {
		if recover() == nil || got == nil || got.Method != http.MethodGet || got.URL.RawQuery != "watch=1" || request.InfoFrom(got.Context()) == nil {
			t.Errorf("told of %+v", got)
		}
	}()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api/v1/pods?watch=1", nil))
}

// The stack is the larger part of the memory of an idle watch, and grows with each filter that has a frame on it. Only Recover
// and Log, which do something afterwards, and the two loops of other filters between them may have frames there.
func TestAWatchKeepsNoFrameOfAFilterThatIsDone(t *testing.T) {
	t.Parallel()
	var on []string
	h := whole(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		pcs := make([]uintptr, 100)
		frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if strings.Contains(f.File, "/server/filters/") && !strings.HasSuffix(f.File, "_test.go") {
				on = append(on, f.Function)
			}
		}
	}))
	r := httptest.NewRequest(http.MethodGet, "/apis/example.com/v1/namespaces/ns/widgets?watch=1", nil)
	r.Header.Set("Authorization", "Bearer s3cret")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if len(on) != 4 {
		t.Errorf("%d frames of filters are on the stack of a watch, want 4:\n%s", len(on), strings.Join(on, "\n"))
	}
}

// Successive filters share one copy of the request, and do not change the request of their caller.
func TestFiltersDoNotChangeTheRequestTheyAreGiven(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"", "?watch=1"} {
		served := false
		h := whole(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			served = true
			if authn.UserFrom(r.Context()).Name != "admin" || r.Header.Get("Authorization") != "" {
				t.Errorf("%s: the handler is told of %+v and %v", query, authn.UserFrom(r.Context()), r.Header)
			}
		}))
		r := httptest.NewRequest(http.MethodGet, "/apis/example.com/v1/namespaces/ns/widgets"+query, nil)
		r.Header.Set("Authorization", "Bearer s3cret")
		before := *r
		h.ServeHTTP(httptest.NewRecorder(), r)
		if !served || r.Context() != before.Context() || r.Header.Get("Authorization") == "" {
			t.Errorf("%s: served: %v; afterwards the request has the context %v and the header %v", query, served, r.Context(), r.Header)
		}
	}
}
