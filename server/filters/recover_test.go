package filters_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server/filters"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

const panicText = "This request caused apiserver to panic. Look in the logs for details.\n"

func TestRecover(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	panics := func(http.ResponseWriter, *http.Request) { panic("boom") }
	w := serve(filters.Recover(zap.New(core)), panics, httptest.NewRequest(http.MethodGet, "/x?y", nil))
	if w.Code != 500 || w.Body.String() != panicText {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	lines := logs.TakeAll()
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	f := lines[0].ContextMap()
	if f["panic"] != "boom" || f["uri"] != "/x?y" || !strings.Contains(f["stack"].(string), "TestRecover") {
		t.Errorf("fields %v", f)
	}
	serve(filters.Recover(nil), panics, httptest.NewRequest(http.MethodGet, "/", nil)) // logs nothing
}

// aborts reports whether a panic aborts the connection.
func aborts(value any) bool {
	err, ok := value.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

func TestRecoverAborts(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"abort":                 func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"response has begun":    func(w http.ResponseWriter, _ *http.Request) { ok(w, nil); panic("boom") },
		"header is written":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK); panic("boom") },
		"response was flushed":  func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); panic("boom") },
		"flushed by controller": func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush(); panic("boom") },
	} {
		func() {
			defer func() {
				if value := recover(); !aborts(value) {
					t.Errorf("%s: panic %v", name, value)
				}
			}()
			serve(filters.Recover(nil), h, httptest.NewRequest(http.MethodGet, "/", nil))
		}()
	}
}

func TestLog(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	for code, lines := range map[int]int{200: 0, 404: 0, 499: 0, 500: 1, 503: 1} {
		h := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
		serve(filters.Log(zap.New(core)), h, httptest.NewRequest(http.MethodGet, "/x", nil))
		if got := logs.TakeAll(); len(got) != lines || (lines == 1 && got[0].ContextMap()["code"] != int64(code)) {
			t.Errorf("%d: %v", code, got)
		}
	}
	if w := serve(filters.Log(nil), ok, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != 200 {
		t.Error(w.Code)
	}
}

// TestWritersKeepPowers has a handler flush, take deadlines and hijack through all filters that wrap the writer.
func TestWritersKeepPowers(t *testing.T) {
	all := []filters.Filter{filters.Recover(nil), filters.Log(zap.NewNop()), filters.Deadline(0), filters.Timeout()}
	t.Run("flush", func(t *testing.T) {
		seen := make(chan struct{})
		for _, h2 := range []bool{false, true} {
			srv := httptest.NewUnstartedServer(filters.Chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "first\n")
				w.(http.Flusher).Flush()
				<-seen // the client has it before the handler returns
				_, _ = io.WriteString(w, "second\n")
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
				<-seen
				if _, can := w.(http.Hijacker); can != (r.ProtoMajor == 1) {
					t.Errorf("HTTP/%d: hijacker %v", r.ProtoMajor, can)
				}
			}), all...))
			srv.EnableHTTP2 = h2
			srv.StartTLS()
			resp, err := srv.Client().Get(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			body := bufio.NewReader(resp.Body)
			for _, want := range []string{"first\n", "second\n"} {
				if line, err := body.ReadString('\n'); line != want || err != nil {
					t.Errorf("%q, %v", line, err)
				}
				seen <- struct{}{}
			}
			_ = resp.Body.Close()
			srv.Close()
		}
	})
	t.Run("hijack", func(t *testing.T) {
		srv := httptest.NewServer(filters.Chain(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "mine")
			_ = conn.Close()
		}), all...))
		defer srv.Close()
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if got, err := io.ReadAll(conn); string(got) != "mine" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("unsupported", func(t *testing.T) {
		w := serve(func(h http.Handler) http.Handler { return filters.Chain(h, all...) }, func(w http.ResponseWriter, _ *http.Request) {
			if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("hijack: %v", err)
			}
		}, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != 200 {
			t.Error(w.Code)
		}
	})
}
