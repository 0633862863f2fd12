package filters_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/response"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// limited is a chain that gives requests for h a deadline of d, and the group that counts them.
func limited(h http.HandlerFunc, d time.Duration, outer ...filters.Filter) (http.Handler, *filters.WaitGroup) {
	group := filters.NewWaitGroup()
	return filters.Chain(h, append(outer, group.Filter(), filters.Deadline(d), filters.Timeout())...), group
}

func TestTimeoutInTime(t *testing.T) {
	h, _ := limited(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Own", "1")
		w.Header().Del("X-Outer")
		if r.URL.Path == "/silent" {
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "body")
	}, time.Minute)
	for path, want := range map[string]string{"/": "body", "/silent": ""} {
		w := httptest.NewRecorder()
		w.Header().Set("X-Outer", "1")
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Header().Get("X-Own") != "1" || w.Header().Get("X-Outer") != "" || w.Body.String() != want || (want != "" && w.Code != 201) {
			t.Errorf("%s: %d %v %q", path, w.Code, w.Header(), w.Body)
		}
	}
}

func TestTimeoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, leave := httptest.NewRecorder(), make(chan struct{})
		late := make(chan error, 3)
		h, group := limited(func(hw http.ResponseWriter, r *http.Request) {
			<-leave // ignores the context
			hw.Header().Set("X-Late", "1")
			hw.WriteHeader(http.StatusOK)
			_, err := io.WriteString(hw, "late")
			late <- err
			late <- http.NewResponseController(hw).Flush()
			late <- http.NewResponseController(hw).SetWriteDeadline(time.Time{})
		}, 10*time.Second)
		start := time.Now()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/apis/g/v/widgets", nil))
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("answered after %v", took)
		}
		group.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := group.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the group does not wait for the handler: %v", err)
		}
		close(leave)
		if err := group.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		for range 3 {
			if err := <-late; !errors.Is(err, http.ErrHandlerTimeout) {
				t.Errorf("late use of the writer: %v", err)
			}
		}
		if s := status(t, w.Body); w.Code != 504 || s.Reason != "Timeout" || s.Message != "Timeout: request did not complete within the allotted timeout" || w.Header().Get("X-Late") != "" {
			t.Errorf("%d %v %+v", w.Code, w.Header(), s)
		}
	})
}

// If no time is left, the handler must not begin: its work would be useless, or half of it.
func TestTimeoutBeforeTheHandlerBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		h := filters.Chain(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler began") }),
			filters.Timeout(func(*http.Request) { calls++ }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(time.Second)
		<-ctx.Done()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		if w.Code != http.StatusGatewayTimeout || calls != 1 {
			t.Errorf("answered %d, told %d times", w.Code, calls)
		}
	})
}

func TestTimeoutAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, group := limited(func(w http.ResponseWriter, r *http.Request) {
			ok(w, r)
			<-r.Context().Done()
			time.Sleep(time.Second)
		}, time.Second)
		func() {
			defer func() {
				if value := recover(); !aborts(value) {
					t.Errorf("panic %v", value)
				}
			}()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		}()
		group.Close()
		if err := group.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestTimeoutHandlerHeedsContext has handlers that return when their context ends. The answer is 504, whether the handler or the
// filter is first.
func TestTimeoutHandlerHeedsContext(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"silently": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"saying so": func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			response.Error(w, r, r.Context().Err())
		},
		"slowly": func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(500 * time.Millisecond)
			w.WriteHeader(http.StatusGatewayTimeout)
			<-r.Context().Done()
			time.Sleep(time.Second)
			_, _ = io.WriteString(w, `{"reason":"Timeout"}`)
		},
	} {
		for range 20 {
			synctest.Test(t, func(t *testing.T) {
				limit, group := limited(h, time.Second)
				w := httptest.NewRecorder()
				limit.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
				if s := status(t, w.Body); w.Code != http.StatusGatewayTimeout || s.Reason != "Timeout" {
					t.Errorf("%s: %d %+v", name, w.Code, s)
				}
				group.Close()
				if err := group.Wait(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestTimeoutWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := limited(func(w http.ResponseWriter, r *http.Request) { time.Sleep(time.Hour); ok(w, r) }, time.Second)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/apis/g/v/widgets?watch=1", nil))
		if w.Body.String() != "ok" {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
}

func TestTimeoutClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		returned := false
		h, _ := limited(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour); returned = true }, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
		if !returned {
			t.Error("the handler was not waited for")
		}
	})
}

func TestTimeoutPanics(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	check := func(t *testing.T, text, where string) {
		t.Helper()
		lines := logs.TakeAll()
		if len(lines) != 1 {
			t.Fatalf("%d lines", len(lines))
		}
		f := lines[0].ContextMap()
		if f["panic"] != text || !strings.Contains(f["stack"].(string), where) {
			t.Errorf("fields %v", f)
		}
	}
	t.Run("in time", func(t *testing.T) {
		h, _ := limited(func(http.ResponseWriter, *http.Request) { panicHere() }, time.Minute, filters.Recover(zap.New(core)))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != 500 || w.Body.String() != panicText {
			t.Errorf("%d %q", w.Code, w.Body)
		}
		check(t, "here", "panicHere")
	})
	t.Run("late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, group := limited(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour); panicHere() }, time.Minute, filters.Recover(zap.New(core)))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			if w.Code != 504 {
				t.Errorf("code %d", w.Code)
			}
			group.Close()
			if err := group.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			check(t, "here", "panicHere")
		})
	})
	for name, leave := range map[string]func(){"abort": func() { panic(http.ErrAbortHandler) }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			h, _ := limited(func(http.ResponseWriter, *http.Request) { leave() }, time.Minute, filters.Recover(zap.New(core)))
			defer func() {
				if value := recover(); !aborts(value) {
					t.Errorf("panic %v", value)
				}
				if n := logs.Len(); n != 0 {
					t.Errorf("%d lines", n)
				}
			}()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		})
	}
}

func panicHere() { panic("here") }

// TestTimeoutOnTheWire has handlers stuck in the network: reading a body that does not come, and writing to a client
// that does not read.
func TestTimeoutOnTheWire(t *testing.T) {
	h, group := limited(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		chunk := make([]byte, 1<<20)
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}, 200*time.Millisecond)
	srv := httptest.NewServer(h)
	defer srv.Close() // hangs while a connection is busy
	dial := func(request string) net.Conn {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	stuck := dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	defer func() { _ = stuck.Close() }()
	slow := dial("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\npart")
	defer func() { _ = slow.Close() }()
	resp, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := status(t, resp.Body); resp.StatusCode != http.StatusGatewayTimeout || s.Reason != "Timeout" || !resp.Close {
		t.Errorf("%v %+v", resp.Header, s)
	}
	group.Close()
	if err := group.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestTimeoutHTTP2 shows that the answer ends although the handler does not.
func TestTimeoutHTTP2(t *testing.T) {
	leave := make(chan struct{})
	h, group := limited(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-leave
	}, 100*time.Millisecond)
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	body, feed := io.Pipe()
	defer func() { _ = feed.Close() }()
	resp, err := srv.Client().Post(srv.URL, "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusGatewayTimeout || err != nil || !strings.Contains(string(text), `"reason":"Timeout"`) {
		t.Errorf("%v %q %v", resp, text, err)
	}
	_ = resp.Body.Close()

	// Only the stream has ended: others on the connection go on.
	reused := false
	trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }}
	again, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	close(leave)
	if resp, err = srv.Client().Do(again); err != nil || resp.StatusCode != http.StatusOK || !reused {
		t.Errorf("%v %v, connection reused: %v", resp, err, reused)
	}
	_ = resp.Body.Close()
	group.Close()
	if err := group.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// stuckWriter is a ResponseWriter whose client takes an answer of a Status, but not of one byte: writing that ends only
// when the deadline of writes is set to the past.
type stuckWriter struct {
	http.ResponseWriter
	once  sync.Once
	freed chan struct{}
}

func (w *stuckWriter) free() { w.once.Do(func() { close(w.freed) }) }

func (w *stuckWriter) Write(p []byte) (int, error) {
	if len(p) > 1 {
		return len(p), nil
	}
	<-w.freed
	return 0, os.ErrDeadlineExceeded
}

func (w *stuckWriter) SetWriteDeadline(at time.Time) error {
	if !at.IsZero() && at.Before(time.Now()) {
		w.free()
	}
	return nil
}

// moment is a context that ends with DeadlineExceeded when passed is closed.
type moment struct {
	context.Context
	passed chan struct{}
}

func (m moment) Deadline() (time.Time, bool) { return time.Now(), true }
func (m moment) Done() <-chan struct{}       { return m.passed }
func (m moment) Err() error {
	select {
	case <-m.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestTimeoutOfAWriteThatJustBegins: a handler that begins to write to a stuck client in the very moment of the deadline
// does not hold the request up.
func TestTimeoutOfAWriteThatJustBegins(t *testing.T) {
	for i := 0; i < 2000 && !t.Failed(); i++ {
		ctx, written := moment{t.Context(), make(chan struct{})}, make(chan struct{})
		h := filters.Timeout()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(written)
			time.AfterFunc(20*time.Microsecond, func() { close(ctx.passed) })
			<-r.Context().Done()
			_, _ = w.Write([]byte("x"))
		}))
		stuck := &stuckWriter{ResponseWriter: httptest.NewRecorder(), freed: make(chan struct{})}
		guard := time.AfterFunc(10*time.Second, func() {
			t.Error("held up")
			stuck.free()
		})
		func() {
			defer func() {
				if p := recover(); p != nil && !aborts(p) {
					t.Errorf("panic %v", p)
				}
			}()
			h.ServeHTTP(stuck, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		}()
		<-written
		guard.Stop()
	}
}

// slowWriter is a ResponseWriter whose client takes what is written only after a deadline for it is set, and if that is in the
// future.
type slowWriter struct {
	http.ResponseWriter
	begun     chan struct{}
	deadlines chan time.Time
}

func (w *slowWriter) Write(p []byte) (int, error) {
	close(w.begun)
	if at := <-w.deadlines; at.Before(time.Now()) {
		return 0, os.ErrDeadlineExceeded
	}
	return w.ResponseWriter.Write(p)
}

func (w *slowWriter) SetWriteDeadline(at time.Time) error {
	w.deadlines <- at
	return nil
}

// TestTimeoutWhileAnErrorIsWritten: a handler that is writing its own error when the deadline passes may finish.
func TestTimeoutWhileAnErrorIsWritten(t *testing.T) {
	ctx := moment{t.Context(), make(chan struct{})}
	w := &slowWriter{ResponseWriter: httptest.NewRecorder(), begun: make(chan struct{}), deadlines: make(chan time.Time, 10)}
	h := filters.Timeout()(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGatewayTimeout)
		_, _ = io.WriteString(w, "too late")
	}))
	go func() {
		<-w.begun
		close(ctx.passed)
	}()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if got := w.ResponseWriter.(*httptest.ResponseRecorder); got.Code != http.StatusGatewayTimeout || got.Body.String() != "too late" {
		t.Errorf("%d %q", got.Code, got.Body)
	}
}
