package webhook_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/webhook"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// elsewhere is a server in plain HTTP that counts its requests and the connections to it.
func elsewhere(t *testing.T) (url string, requests *atomic.Int64) {
	t.Helper()
	requests = new(atomic.Int64)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret") }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			requests.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, requests
}

// Redirects are not followed to any address. If they are allowed, redirects to plain HTTP are still refused.
func TestRedirectsAreRefused(t *testing.T) {
	t.Parallel()
	inside, reached := elsewhere(t)
	var calls atomic.Int64
	h := serve(t, nil)
	h.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		code, to := http.StatusTemporaryRedirect, ""
		switch _, _ = fmt.Sscanf(r.URL.Path, "/%d/%s", &code, &to); to {
		case "inside":
			http.Redirect(w, r, inside, code)
		case "itself":
			http.Redirect(w, r, h.URL+"/200/there", code)
		case "loop":
			http.Redirect(w, r, r.URL.Path, code)
		default:
			_, _ = io.WriteString(w, "there")
		}
	})
	for _, c := range []struct {
		follow bool
		path   string
		calls  int64
		want   string // "" means an answer
	}{
		{false, "301/inside", 1, "the webhook attempted to redirect this request, which is not permitted"},
		{false, "302/inside", 1, "the webhook attempted to redirect"},
		{false, "303/inside", 1, "the webhook attempted to redirect"},
		{false, "307/inside", 1, "the webhook attempted to redirect"},
		{false, "308/itself", 1, "the webhook attempted to redirect"},
		{true, "307/itself", 2, ""},
		{true, "302/inside", 1, "redirects from https to http, which is not permitted"},
		{true, "307/inside", 1, "redirects from https to http, which is not permitted"},
		{true, "307/loop", 10, "stopped after 10 redirects"},
	} {
		calls.Store(0)
		caller := webhook.New(webhook.Options{FollowRedirects: c.follow})
		answer, err := clientOf(t, caller, webhook.Config{URL: h.URL + "/" + c.path, CABundle: h.pem}).Post(t.Context(), []byte("{}"))
		caller.Close()
		if c.want == "" {
			if err != nil || string(answer) != "there" {
				t.Errorf("%s: %q, %v", c.path, answer, err)
			}
		} else {
			wantError(t, err, c.want)
		}
		if got := calls.Load(); got != c.calls {
			t.Errorf("%s, follow %t: %d calls, want %d", c.path, c.follow, got, c.calls)
		}
	}
	if got := reached.Load(); got != 0 {
		t.Errorf("%d connections were made to where the webhook redirects", got)
	}
}

// The text of an error is the same for every failure, and contains the reason only if ShowErrors is set.
func TestErrorsTellNothing(t *testing.T) {
	t.Parallel()
	inside, _ := elsewhere(t)
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"it is a Status","reason":"NotFound","code":404}`
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch strings.TrimPrefix(r.URL.Path, "/") {
		case "found":
			http.Redirect(w, r, inside, http.StatusFound)
		case "404":
			say(404, "secret")(w, r)
		case "status":
			say(404, status, "Content-Type", "application/json")(w, r)
		case "500":
			say(500, "secret")(w, r)
		case "type":
			say(200, "secret", "Content-Type", "a;b;c=")(w, r)
		case "long":
			say(200, strings.Repeat("x", 2000))(w, r)
		case "header":
			say(200, "secret", "X-Long", strings.Repeat("x", 100<<10))(w, r)
		case "amid":
			w.Header().Set("Content-Length", "100")
			panic(http.ErrAbortHandler)
		case "hang":
			<-r.Context().Done()
		}
	})
	closed, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	for _, url := range []string{
		h.URL + "/found", h.URL + "/404", h.URL + "/status", h.URL + "/500", h.URL + "/type", h.URL + "/long", h.URL + "/header", h.URL + "/amid",
		h.URL + "/hang", h.URL + "/empty",
		"https://" + closed.Addr().String() + "/refused", strings.Replace(inside, "http:", "https:", 1) + "/plain", "https://no.such.name.invalid/dns",
	} {
		texts := map[bool]string{}
		for _, show := range []bool{false, true} {
			caller := webhook.New(webhook.Options{Timeout: 2 * time.Second, MaxAnswer: 1000, ShowErrors: show})
			_, err := clientOf(t, caller, webhook.Config{URL: url, CABundle: h.pem}).Post(t.Context(), []byte("{}"))
			caller.Close()
			if reason := reasonOf(t, err); reason.Error() == "" || show && err.Error() != reason.Error() {
				t.Errorf("%s: %v, for %v", url, err, reason)
			}
			if s := apierrors.APIStatus(nil); errors.As(err, &s) {
				t.Errorf("%s: there is a Status in the error", url)
			}
			texts[show] = err.Error()
		}
		if want := fmt.Sprintf("Post %q: no usable answer; the log of the server says why", url+"?timeout=2s"); texts[false] != want {
			t.Errorf("%s: clients are told %s, want %s", url, texts[false], want)
		}
		if texts[true] == texts[false] {
			t.Errorf("%s: nothing else is shown when it may be", url)
		}
	}
}

// The filter is called with the address of the connection, after names were resolved. No connection is made to an address that it
// refuses.
func TestDialFilter(t *testing.T) {
	t.Parallel()
	h := serve(t, say(200, "ok"), "localhost")
	_, port, err := net.SplitHostPort(h.address())
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Value
	filter := func(network, address string) error {
		asked.Store(network + " " + address)
		if ip, err := netip.ParseAddrPort(address); err != nil || ip.Addr().Unmap().IsLoopback() {
			return fmt.Errorf("%s is not allowed", address)
		}
		return nil
	}
	post := func(o webhook.Options, url string) error {
		caller := webhook.New(o)
		defer caller.Close()
		_, err := clientOf(t, caller, webhook.Config{URL: url, CABundle: h.pem}).Post(t.Context(), []byte("{}"))
		return err
	}
	for _, url := range []string{h.URL, "https://localhost:" + port, "https://[::ffff:127.0.0.1]:" + port} {
		wantError(t, post(webhook.Options{DialFilter: filter}, url), "is not allowed")
	}
	if got := h.conns.Load(); got != 0 {
		t.Errorf("%d connections were made", got)
	}
	if err := post(webhook.Options{DialFilter: func(string, string) error { return nil }}, h.URL); err != nil {
		t.Error(err)
	}

	// With a Dial function of the program, the filter sees the address that the function connected to.
	there := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, h.address())
	}
	wantError(t, post(webhook.Options{Dial: there, DialFilter: filter}, "https://192.0.2.1"), "is not allowed")
	if got := asked.Load(); got != "tcp "+h.address() {
		t.Errorf("the filter was asked for %v", got)
	}
	if err := post(webhook.Options{Dial: there, DialFilter: func(string, string) error { return nil }}, h.URL); err != nil {
		t.Error(err)
	}
}

// With a filter there is no proxy, which would bypass the filter, unless the program sets one.
func TestDialFilterAndProxy(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://192.0.2.7:3128")
	var dialled atomic.Value
	dial := func(_ context.Context, _, address string) (net.Conn, error) {
		dialled.Store(address)
		return nil, errors.New("nobody")
	}
	caller := webhook.New(webhook.Options{Dial: dial, DialFilter: func(string, string) error { return nil }})
	t.Cleanup(caller.Close)
	_, err := clientOf(t, caller, webhook.Config{URL: "https://hooks.example.com"}).Post(t.Context(), nil)
	wantError(t, err, "nobody")
	if got := dialled.Load(); got != "hooks.example.com:443" {
		t.Errorf("dialled %v", got)
	}
}

// countedConn counts the bytes that are read from a connection.
type countedConn struct {
	net.Conn
	read *atomic.Int64
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// An answer is read only up to the limits for its header, its body, and its decompressed body.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	var empty bytes.Buffer // an empty gzip stream, which may be repeated
	_ = gzip.NewWriter(&empty).Close()
	flood := func(w http.ResponseWriter, chunk []byte) {
		for range 64 << 20 / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/header":
			for n := range 1000 {
				w.Header().Set(fmt.Sprint("X-", n), strings.Repeat("x", 10<<10))
			}
		case "/early":
			w.Header().Set("Link", strings.Repeat("x", 10<<10))
			for range 1000 {
				w.WriteHeader(http.StatusEarlyHints)
			}
		case "/nothing":
			w.Header().Set("Content-Encoding", "gzip")
			flood(w, bytes.Repeat(empty.Bytes(), 1000))
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 64 {
				_, _ = z.Write(make([]byte, 1<<20))
			}
			_ = z.Close()
		case "/refused":
			w.WriteHeader(http.StatusNotFound)
			flood(w, make([]byte, 64<<10))
		case "/body":
			flood(w, make([]byte, 64<<10))
		case "/good":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, "good")
			_ = z.Close()
		}
	}, "hooks.prod.svc")
	for _, c := range []struct {
		path, want string
		most       int64 // the largest number of bytes that are read
	}{
		{"/header", "header", 4 << 20},
		{"/early", "header", 4 << 20},
		{"/nothing", "the answer is longer than 1048576 bytes", limit + 1<<20},
		{"/bomb", "the answer is longer than 1048576 bytes", limit + 1<<20},
		{"/body", "the answer is longer than 1048576 bytes", limit + 1<<20},
		{"/refused", "could not find the requested resource", limit + 1<<20},
		{"/good", "", 64 << 10},
	} {
		for _, cfg := range []webhook.Config{ // by HTTP/2 and HTTP/1.1
			{URL: h.URL + c.path, CABundle: h.pem},
			{Service: &webhook.Service{Namespace: "prod", Name: "hooks", Path: c.path}, CABundle: h.pem},
		} {
			var read atomic.Int64
			caller := webhook.New(webhook.Options{
				MaxAnswer: limit,
				Resolve:   func(context.Context, string, string, int32) (string, error) { return h.address(), nil },
				Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
					if err != nil {
						return nil, err
					}
					_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
					return countedConn{conn, &read}, nil
				},
			})
			answer, err := clientOf(t, caller, cfg).Post(t.Context(), []byte("{}"))
			caller.Close()
			if c.want == "" {
				if err != nil || string(answer) != "good" {
					t.Errorf("%s: %q, %v", c.path, answer, err)
				}
			} else {
				wantError(t, err, c.want)
			}
			if got := read.Load(); got > c.most {
				t.Errorf("%s: %d bytes were read, want at most %d", c.path, got, c.most)
			}
		}
	}
}
