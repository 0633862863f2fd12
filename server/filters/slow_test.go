package filters_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// slowly returns a chain in which every request was received a second ago, and the lines that it logs.
func slowly(h http.HandlerFunc) (http.Handler, *observer.ObservedLogs) {
	core, logged := observer.New(zapcore.DebugLevel)
	received := func() time.Time { return time.Now().Add(-time.Second) }
	admin := authn.Func(func(*http.Request) (*authn.Response, error) {
		time.Sleep(time.Millisecond)
		return &authn.Response{User: authn.User{Name: "admin"}}, nil
	})
	return filters.Chain(h, filters.ReceivedAt(received), filters.RequestInfo(request.Resolver{}), filters.Slow(zap.New(core), 500*time.Millisecond),
		filters.Deadline(time.Minute), filters.Timeout(), filters.Authenticate(admin, filters.AuthenticateOptions{})), logged
}

// idleReader is the ResponseWriter of a client that is slow to read.
type idleReader struct{ *httptest.ResponseRecorder }

// Write implements http.ResponseWriter.
func (w *idleReader) Write(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return w.ResponseRecorder.Write(p)
}

func TestSlowSaysWhereTheTimeWent(t *testing.T) {
	h, logged := slowly(func(w http.ResponseWriter, r *http.Request) {
		request.LatencyFrom(r.Context()).Add(request.Storing, 700*time.Millisecond)
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "none")
	})
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/pods?limit=5&token=abc&labelSelector=a%3Db&odd", http.NoBody)
	r.Header.Set("User-Agent", "kubectl")
	h.ServeHTTP(&idleReader{httptest.NewRecorder()}, r)
	if logged.Len() != 1 {
		t.Fatalf("%d lines, want 1", logged.Len())
	}
	line := logged.All()[0]
	fields := line.ContextMap()
	for name, want := range map[string]any{
		"method": "GET", "uri": "/api/v1/pods?limit=5&token=...&labelSelector=a%3Db&odd", "code": int64(404), "userAgent": "kubectl", "auditID": "",
	} {
		if fields[name] != want {
			t.Errorf("%s is %v, want %v", name, fields[name], want)
		}
	}
	if line.Level != zapcore.InfoLevel || fields["duration"].(time.Duration) < time.Second {
		t.Errorf("%v %v", line.Level, fields)
	}
	spent := fmt.Sprint(fields["spent"])
	if !strings.Contains(spent, "storage:700ms") || !strings.Contains(spent, "authentication:") || !strings.Contains(spent, "write:") {
		t.Errorf("the time went to %s", spent)
	}
}

func TestSlowIsAboutRequestsThatEnd(t *testing.T) {
	for name, c := range map[string]struct {
		target string
		least  time.Duration
		want   int
	}{
		"a read":          {"/api/v1/pods/a", time.Nanosecond, 1},
		"a path":          {"/healthz", time.Nanosecond, 1},
		"a fast one":      {"/api/v1/pods/a", time.Hour, 0},
		"a watch":         {"/api/v1/pods?watch=true", time.Nanosecond, 0},
		"a log":           {"/api/v1/namespaces/a/pods/a/log", time.Nanosecond, 0},
		"nobody wants it": {"/api/v1/pods/a", -1, 0},
	} {
		core, logged := observer.New(zapcore.DebugLevel)
		h := filters.Chain(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got, want := request.LatencyFrom(r.Context()) != nil, c.want == 1 || c.least == time.Hour; got != want {
				t.Errorf("%s: times are recorded: %v", name, got)
			}
		}), filters.RequestInfo(request.Resolver{}), filters.Slow(zap.New(core), c.least))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", c.target, http.NoBody))
		if logged.Len() != c.want {
			t.Errorf("%s: %d lines, want %d", name, logged.Len(), c.want)
		}
	}
}

// The lines are bounded, whatever clients do.
func TestSlowWritesFewShortLines(t *testing.T) {
	h, logged := slowly(func(http.ResponseWriter, *http.Request) {})
	long := strings.Repeat("x", 1<<20)
	for range 50 {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/apis?pretty="+long+"&"+long, http.NoBody)
		r.Header.Set("User-Agent", long)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := logged.Len(); n < 10 || n == 50 { // 10 for each second that the test takes
		t.Errorf("%d lines", n)
	}
	for _, line := range logged.All() {
		for name, value := range line.ContextMap() {
			if text, ok := value.(string); ok && len(text) > 1<<10 {
				t.Errorf("%s has %d bytes", name, len(text))
			}
		}
	}
}

// A logger that writes no line makes no request be measured.
func TestSlowIsOffWithoutItsLevel(t *testing.T) {
	core, _ := observer.New(zapcore.WarnLevel)
	h := filters.Slow(zap.New(core), 1)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if request.LatencyFrom(r.Context()) != nil {
			t.Error("times are recorded")
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/apis", http.NoBody))
}
