package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
)

// During Serving.ShutdownDelay only /readyz says that the server will end.
func TestShutdownDelay(t *testing.T) {
	t.Parallel()
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Serving.ShutdownDelay = time.Hour
	srv := run(t, o)
	c, auth := srv.client(t), "Bearer "+srv.Credentials().Token
	get := func(path string) (int, string) { return call(t, c, "GET", srv.url+path, "", "Authorization", auth) }
	req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.url+widgetsPath+"?watch=1", nil)
	req.Header.Set("Authorization", auth)
	watch, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	srv.stop()
	eventually(t, "/readyz fails", func() bool {
		code, body := get("/readyz")
		return code == http.StatusInternalServerError && strings.Contains(body, "[-]shutdown failed: reason withheld")
	})
	code, body := call(t, c, "POST", srv.url+widgetsPath, `{"metadata":{"name":"a"}}`, "Authorization", auth)
	wantCode(t, http.StatusCreated, code, body)
	if code, body := get("/livez"); code != http.StatusOK {
		t.Errorf("/livez: %d %s", code, body)
	}
	var first [1]byte
	if _, err := watch.Body.Read(first[:]); err != nil { // the watch goes on
		t.Error(err)
	}
	if err := srv.Close(); err != nil { // ends the delay
		t.Error(err)
	}
	if err := <-srv.ended; err != nil {
		t.Error(err)
	}
	srv.ended <- nil
}

// With Serving.ShutdownRetryAfter the listener is open until the requests have finished.
func TestShutdownRetryAfter(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 1)
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Serving.ShutdownRetryAfter, o.Serving.Filters = true, tellPosts(begun)
	srv := run(t, o)
	auth := "Bearer " + srv.Credentials().Token
	finish := post(t, srv.client(t), srv.url, auth)
	<-begun
	srv.stop()
	eventually(t, "requests are refused", func() bool {
		got := roundTrip(t, srv.client(t), "GET", srv.url+widgetsPath, "", "Authorization", auth) // a new connection
		if got.code == http.StatusOK {
			return false
		}
		const want = "The apiserver is shutting down, please try again later.\n"
		if got.code != http.StatusTooManyRequests || got.body != want || got.header.Get("Retry-After") != "5" || got.header.Get("Audit-Id") == "" {
			t.Errorf("%d %v %q", got.code, got.header, got.body)
		}
		return true
	})
	for path, want := range map[string]int{"/livez": 200, "/readyz": 500, "/metrics": 200} {
		code, text := call(t, srv.client(t), "GET", srv.url+path, "", "Authorization", auth)
		wantCode(t, want, code, text)
	}
	if got := finish(); got != "201 Created" {
		t.Errorf("the request under way was answered %q", got)
	}
	if err := <-srv.ended; err != nil {
		t.Error(err)
	}
	srv.ended <- nil
}

// With Serving.ShutdownRetryAfter the listener is open until the watches have ended, too.
func TestShutdownRetryAfterWaitsForWatches(t *testing.T) {
	t.Parallel()
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Serving.ShutdownRetryAfter, o.Serving.ShutdownWatchGrace = true, time.Hour
	srv := run(t, o)
	auth := "Bearer " + srv.Credentials().Token
	req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.url+widgetsPath+"?watch=1", nil)
	req.Header.Set("Authorization", auth)
	watch, err := srv.client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	refused := func() (code int, closes bool) {
		one := srv.client(t) // with a connection of its own, of HTTP/1.1
		one.Transport.(*http.Transport).ForceAttemptHTTP2 = false
		req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.url+widgetsPath, nil)
		req.Header.Set("Authorization", auth)
		resp, err := one.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode, resp.Close
	}
	srv.stop()
	eventually(t, "requests are refused", func() bool { code, _ := refused(); return code == http.StatusTooManyRequests })
	time.Sleep(50 * time.Millisecond) // nothing but the watch is left
	if code, closes := refused(); code != http.StatusTooManyRequests || !closes {
		t.Errorf("while a watch lasts: %d, closes: %v", code, closes)
	}
	if err := srv.Close(); err != nil { // ends the grace
		t.Error(err)
	}
	if rest, err := io.ReadAll(watch.Body); err != nil || len(rest) != 0 {
		t.Errorf("the watch ended with %q, %v; want a clean end", rest, err)
	}
	if err := <-srv.ended; err != nil {
		t.Error(err)
	}
	srv.ended <- nil
	if c, err := net.Dial("tcp", strings.TrimPrefix(srv.url, "https://")); err == nil {
		_ = c.Close()
		t.Error("the listener is open after the end")
	}
}

// With Serving.ShutdownWatchGrace watches end one after the other, cleanly, while other requests are refused.
func TestShutdownWatchGrace(t *testing.T) {
	t.Parallel()
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Serving.ShutdownWatchGrace = time.Hour
	srv := run(t, o)
	auth := "Bearer " + srv.Credentials().Token
	c := srv.client(t)
	req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.url+widgetsPath+"?watch=1", nil)
	req.Header.Set("Authorization", auth)
	watch, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	over := make(chan string, 1)
	go func() {
		rest, err := io.ReadAll(watch.Body)
		over <- fmt.Sprintf("%q %v", rest, err)
		close(over)
	}()
	srv.stop()
	eventually(t, "requests are refused", func() bool {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.url+widgetsPath, nil)
		req.Header.Set("Authorization", auth)
		resp, err := c.Do(req)
		if err != nil { // the listener is closed
			return true
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusServiceUnavailable
	})
	select {
	case got := <-over:
		t.Errorf("the watch ended at once: %s", got)
	case <-time.After(50 * time.Millisecond):
	}
	if err := srv.Close(); err != nil { // ends the grace
		t.Error(err)
	}
	if got, ok := <-over; ok && got != `"" <nil>` {
		t.Errorf("the watch ended with %s, want a clean end", got)
	}
	if err := <-srv.ended; err != nil {
		t.Error(err)
	}
	srv.ended <- nil
}

// A watch that ends in its turn lets the server end before its time is over.
func TestShutdownWatchGraceEnds(t *testing.T) {
	t.Parallel()
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Serving.ShutdownWatchGrace = 20 * time.Millisecond
	srv := run(t, o)
	req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.url+widgetsPath+"?watch=1", nil)
	req.Header.Set("Authorization", "Bearer "+srv.Credentials().Token)
	watch, err := srv.client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	srv.stop()
	if rest, err := io.ReadAll(watch.Body); err != nil || len(rest) != 0 {
		t.Errorf("the watch ended with %q, %v; want a clean end", rest, err)
	}
	if err := <-srv.ended; err != nil {
		t.Error(err)
	}
	srv.ended <- nil
}

// heldRequests returns a Serving.Filters under which the handler of a watch sends to ended when the watch has ended, and returns when
// release is closed. A POST sends to begun, and ends when release is closed, whatever happens to it.
func heldRequests(begun, ended chan<- struct{}, release <-chan struct{}) func([]server.NamedFilter) []server.NamedFilter {
	return func(chain []server.NamedFilter) []server.NamedFilter {
		return server.InsertAfter(chain, server.FilterMetrics, server.NamedFilter{Name: "hold", Filter: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					begun <- struct{}{}
					<-release
					return
				}
				next.ServeHTTP(w, r)
				if r.URL.Query().Has("watch") {
					ended <- struct{}{}
					<-release
				}
			})
		}})
	}
}

// The watches that end last have CloseDelay to write their ends, also if the time of requests is over before their turn.
func TestShutdownAwaitsWatchesAfterTheirGrace(t *testing.T) {
	t.Parallel()
	ended, release := make(chan struct{}, 1), make(chan struct{})
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Limits.RequestTimeout = 10 * time.Millisecond
	o.Serving.ShutdownWatchGrace, o.Serving.CloseDelay = 20*time.Millisecond, time.Hour
	o.Serving.Filters = heldRequests(nil, ended, release)
	srv, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	foreign := httptest.NewServer(srv.Handler())
	defer foreign.Close()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", foreign.URL+widgetsPath+"?watch=1", nil)
	req.Header.Set("Authorization", "Bearer "+srv.Credentials().Token)
	watch, err := foreign.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	shut := make(chan error, 1)
	go func() { shut <- srv.Shutdown(t.Context()) }()
	<-ended
	select {
	case err := <-shut:
		t.Errorf("Shutdown returned %v before a watch had written its end", err)
		shut <- nil
	case <-time.After(1500 * time.Millisecond): // requests that last have a second after that
	}
	close(release)
	if rest, err := io.ReadAll(watch.Body); err != nil || len(rest) != 0 {
		t.Errorf("the watch ended with %q, %v; want a clean end", rest, err)
	}
	if err := <-shut; err != nil {
		t.Error(err)
	}
}

// Connections stay open for CloseDelay after the last watch, also if the time of requests is over before.
func TestShutdownKeepsConnectionsAfterTheGrace(t *testing.T) {
	t.Parallel()
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Limits.RequestTimeout = 10 * time.Millisecond
	o.Serving.ShutdownWatchGrace, o.Serving.CloseDelay = 20*time.Millisecond, time.Hour
	begun, release := make(chan struct{}), make(chan struct{})
	o.Serving.TrustFilters = true
	o.Serving.Filters = func(chain []server.NamedFilter) []server.NamedFilter { // in front of the one that counts requests
		return server.InsertBefore(chain, server.FilterInFlightWait, server.NamedFilter{Name: "hold", Filter: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/livez" {
					begun <- struct{}{}
					<-release
				}
				next.ServeHTTP(w, r)
			})
		}})
	}
	srv := run(t, o)
	auth := "Bearer " + srv.Credentials().Token
	c := srv.client(t)
	alive := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.url+"/livez", nil)
		resp, err := c.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		alive <- err
	}()
	<-begun
	req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.url+widgetsPath+"?watch=1", nil)
	req.Header.Set("Authorization", auth)
	watch, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	srv.stop()
	if rest, err := io.ReadAll(watch.Body); err != nil || len(rest) != 0 {
		t.Errorf("the watch ended with %q, %v; want a clean end", rest, err)
	}
	time.Sleep(50 * time.Millisecond)
	close(release)
	if err := <-alive; err != nil {
		t.Errorf("a request on a connection that was open at the end: %v", err)
	}
	if err := <-srv.ended; err != nil {
		t.Error(err)
	}
	srv.ended <- nil
}

// A request that does not end holds Serve until Close is called, and not for the time of requests.
func TestCloseEndsTheWaitForRequests(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}, 1), make(chan struct{})
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Limits.RequestTimeout = time.Hour
	o.Serving.CloseDelay = time.Millisecond
	o.Serving.Filters = heldRequests(begun, nil, release)
	srv := run(t, o)
	finish := post(t, srv.client(t), srv.url, "Bearer "+srv.Credentials().Token)
	<-begun
	srv.stop()
	select {
	case err := <-srv.ended:
		t.Errorf("Serve returned %v, with a request that had not ended", err)
		srv.ended <- nil
	case <-time.After(50 * time.Millisecond):
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if err := <-srv.ended; err != nil {
		t.Error(err)
	}
	srv.ended <- nil
	close(release)
	_ = finish
}
