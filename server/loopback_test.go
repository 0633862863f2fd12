package server_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
)

// Requests over the loopback are those of the user of the transport, and pass authorization.
func TestLoopbackUsers(t *testing.T) {
	t.Parallel()
	srv, err := server.New(server.Options{Groups: []server.Group{widgets()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	anna := &authn.User{Name: "anna", Groups: make([]string, 0, 4)}
	system, some, none, nobody := srv.Loopback(authn.System()), srv.Loopback(anna), srv.Loopback(nil), srv.Loopback(&authn.User{})
	anna.Name, anna.Groups = "root", append(anna.Groups, authn.MastersGroup) // without effect: the user is copied
	for _, c := range []struct {
		name       string
		tr         http.RoundTripper
		url, token string
		code       int
		want       string
	}{
		{"the system", system, "http://loopback" + widgetsPath, "", 200, "WidgetList"},
		{"the system by another URL", system, "https://example.com:8443" + widgetsPath, "", 200, "WidgetList"},
		{"the system with a wrong token", system, "http://loopback" + widgetsPath, "wrong", 200, "WidgetList"},
		{"a user", some, "http://loopback" + widgetsPath, "", 403, `User \"anna\" cannot list`},
		{"a user with the administrator's token", some, "http://loopback" + widgetsPath, srv.Credentials().Token, 403, `User \"anna\"`},
		{"discovery, for authenticated users", some, "http://loopback/apis", "", 200, "example.com"},
		{"no user", none, "http://loopback" + widgetsPath, "", 403, `User \"system:anonymous\"`},
		{"no user with the administrator's token", none, "http://loopback" + widgetsPath, srv.Credentials().Token, 200, "WidgetList"},
		{"no user with a wrong token", none, "http://loopback" + widgetsPath, "wrong", 401, "Unauthorized"},
		{"a user without a name", nobody, "http://loopback" + widgetsPath, "", 401, "Unauthorized"},
	} {
		var header []string
		if c.token != "" {
			header = []string{"Authorization", "Bearer " + c.token}
		}
		if code, body := call(t, &http.Client{Transport: c.tr}, "GET", c.url, "", header...); code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s; want %d and %s", c.name, code, body, c.code, c.want)
		}
	}
}

// Watches over the loopback end with the server, and no goroutine of the loopback is left afterwards. More watches than a
// connection of HTTP/2 has streams are possible.
func TestLoopbackEnds(t *testing.T) {
	srv, err := server.New(server.Options{Groups: []server.Group{widgets()}})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: srv.Loopback(authn.System())}
	var watches, events sync.WaitGroup
	for range 150 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://loopback"+widgetsPath+"?watch=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		events.Add(1)
		watches.Go(func() {
			defer func() { _ = resp.Body.Close() }()
			lines := bufio.NewReader(resp.Body)
			if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, `"ADDED"`) {
				t.Errorf("a watch: %q, %v", line, err)
			}
			events.Done()
			if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
				t.Errorf("the end of a watch: %q, %v", rest, err)
			}
		})
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://loopback"+widgetsPath, strings.NewReader(`{"metadata":{"name":"a"},"spec":{"size":3}}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil || resp.StatusCode != 201 {
		t.Fatal(resp, err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	events.Wait()
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	watches.Wait()
	for _, tr := range []http.RoundTripper{client.Transport, srv.Loopback(authn.System())} {
		if _, err := (&http.Client{Transport: tr}).Do(r.Clone(t.Context())); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("after the end: %v", err)
		}
	}
	stacks := make([]byte, 4<<20)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left := string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(left, "memnet") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("goroutines are left:\n%s", left)
		}
	}
}

// What the caller does to the attributes of the user afterwards has no effect.
func TestLoopbackCopiesExtra(t *testing.T) {
	t.Parallel()
	seen := make(chan []string, 1)
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Serving.TrustFilters = true
	o.Serving.Filters = func(l []server.NamedFilter) []server.NamedFilter {
		return server.InsertAfter(l, server.FilterAuthenticate, server.NamedFilter{Name: "see", Filter: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen <- authn.UserFrom(r.Context()).Extra["key"]
				next.ServeHTTP(w, r)
			})
		}})
	}
	srv, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	anna := &authn.User{Name: "anna", Extra: map[string][]string{"key": {"own"}}}
	tr := srv.Loopback(anna)
	anna.Extra["key"][0] = "changed"
	code, body := call(t, &http.Client{Transport: tr}, "GET", "http://loopback/apis", "")
	wantCode(t, http.StatusOK, code, body)
	if got := <-seen; len(got) != 1 || got[0] != "own" {
		t.Errorf("the user has %q", got)
	}
}
