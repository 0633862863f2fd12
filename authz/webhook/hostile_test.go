package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/webhook"
	"github.com/keelson-dev/keelson/runtime/client"
)

// TestHostileWebhooks checks that no webhook costs more than the bounds, allows by a failure, or shows users the network.
func TestHostileWebhooks(t *testing.T) {
	elsewhere := serve(t, says(`{"allowed":true}`))
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	hang := func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}
	forever := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, text); err != nil {
					return
				}
			}
		}
	}
	again := func(code int, after string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(code)
		}
	}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		calls   int32
		result  string
	}{
		{"hangs", hang, 1, webhook.Timeout},
		{"hangs in the answer", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"status":{"allowed":true`)
			w.(http.Flusher).Flush()
			hang(w, r)
		}, 1, webhook.Timeout},
		{"endless answer", forever(strings.Repeat(" ", 1<<16)), 1, webhook.Error},
		{"large answer", says(`{"allowed":true,"reason":"` + strings.Repeat("x", webhook.MaxAnswer) + `"}`), 1, webhook.Error},
		{"large answer of an error", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			forever(strings.Repeat("x", 1<<16))(w, r)
		}, 1, webhook.Error},
		{"endless redirects", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		}, 0, webhook.Error},
		{"redirects to another server", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, 1, webhook.Error},
		{"always 500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, 5, webhook.Error},
		{"always again", again(http.StatusTooManyRequests, "1"), 5, webhook.Error},
		{"again in a year", again(http.StatusServiceUnavailable, "31536000"), 5, webhook.Error},
		{"closes", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, 0, webhook.Error},
		{"another version", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","status":{"allowed":true}}`)
		}, 1, webhook.Error},
		{"deep answer", says(`{"allowed":true,"x":` + strings.Repeat("[", 200_000)), 1, webhook.Error},
		{"a list", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `[{"status":{"allowed":true}}]`)
		}, 1, webhook.Error},
		{"HTML", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `<html>allowed</html>`) }, 1, webhook.Error},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.handler)
			var results []string
			var failure string
			a := hook(t, s.URL, webhook.Options{
				Timeout: 300 * time.Millisecond, Hooks: webhook.Hooks{
					FailedOpen: func(_, result string) { results = append(results, result) },
					Failed:     func(_ string, err error) { failure = err.Error() },
				},
			})
			verdict, reason, err := a.Authorize(t.Context(), named("u", "x"))
			if verdict != authz.NoOpinion || reason != "" || err == nil {
				t.Fatalf("%v %q %v", verdict, reason, err)
			}
			if strings.Contains(err.Error(), "127.0.0.1") || len(err.Error()) > 1024 {
				t.Errorf("the user is told %.2000s", err)
			}
			if failure == "" || fmt.Sprint(results) != fmt.Sprint([]string{c.result}) {
				t.Errorf("the hooks were told %q, %q", failure, results)
			}
			if n := s.calls.Load(); c.calls > 0 && n != c.calls || n > 11 {
				t.Errorf("%d calls, want %d", n, c.calls)
			}
		})
	}
	t.Cleanup(func() {
		if n := elsewhere.calls.Load(); n > 0 {
			t.Errorf("another server was asked %d times", n)
		}
	})
}

// A webhook whose certificate is not trusted is not asked, and so if the other end does not speak TLS.
func TestWrongTLS(t *testing.T) {
	secure := httptest.NewTLSServer(says(`{"allowed":true}`))
	t.Cleanup(secure.Close)
	plain := serve(t, says(`{"allowed":true}`))
	for _, url := range []string{secure.URL, strings.Replace(plain.URL, "http:", "https:", 1), "http://127.0.0.1:1"} {
		var failure string
		a, err := webhook.New(client.Config{Server: url}, webhook.Options{Deny: true, Hooks: webhook.Hooks{Failed: func(_ string, err error) { failure = err.Error() }}})
		if err != nil {
			t.Fatal(err)
		}
		verdict, _, err := a.Authorize(t.Context(), named("u", "x"))
		a.Close()
		if verdict != authz.Deny || err == nil || strings.Contains(err.Error(), "127.0.0.1") || !strings.Contains(failure, "127.0.0.1") {
			t.Errorf("%s: %v %v, and the log has %s", url, verdict, err, failure)
		}
	}
}

// A request that ends does not wait for the webhook, and says nothing about other requests.
func TestRequestsThatEnd(t *testing.T) {
	began, release := make(chan struct{}, 2), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		select {
		case <-release:
			says(`{"allowed":true}`)(w, r)
		case <-r.Context().Done():
		}
	})
	a := hook(t, s.URL, webhook.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, _, err := a.Authorize(ctx, named("u", "x"))
		first <- err
	}()
	<-began
	go func() {
		v, _, err := a.Authorize(t.Context(), named("u", "x"))
		if v != authz.Allow && err == nil {
			err = fmt.Errorf("the verdict is %v", v)
		}
		second <- err
	}()
	cancel()
	if err := <-first; err == nil {
		t.Error("the request that ended was allowed")
	}
	<-began
	close(release)
	if err := <-second; err != nil {
		t.Error(err)
	}
}

// The attempts together have a bound.
func TestTime(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	var result string
	a := hook(t, s.URL, webhook.Options{Time: 50 * time.Millisecond, Backoff: time.Hour, Hooks: webhook.Hooks{FailedOpen: func(_, r string) { result = r }}})
	for _, name := range []string{"x", strings.Repeat("x", webhook.MaxRemembered)} {
		if _, _, err := a.Authorize(t.Context(), named("u", name)); err == nil || result != webhook.Error {
			t.Errorf("%v %s", err, result)
		}
	}
}

// FuzzAnswer checks that no answer does harm, and that none allows which a strict reader of JSON does not find to allow.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{`{"status":{"allowed":true}}`, `{"Status":{"allowed":true}}`, `{"status":{"allowed":true,"denied":true}}`, `{"status":null}`, `[]`, `{"status":{"allowed":"true"}}`} {
		f.Add([]byte(seed))
	}
	var answer atomic.Pointer[[]byte]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(*answer.Load()) }))
	f.Cleanup(server.Close)
	a, err := webhook.New(client.Config{Server: server.URL}, webhook.Options{Authorized: -1, Unauthorized: -1, Attempts: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(a.Close)
	f.Fuzz(func(t *testing.T, text []byte) {
		answer.Store(&text)
		verdict, _, err := a.Authorize(t.Context(), named("u", "x"))
		if verdict != authz.Allow {
			return
		}
		var all map[string]map[string]any
		strict := json.NewDecoder(bytes.NewReader(text))
		if fault := strict.Decode(&all); err != nil || all["status"]["allowed"] != true && fault == nil || all["status"]["denied"] == true {
			t.Errorf("%q allows: %v", text, err)
		}
	})
}
