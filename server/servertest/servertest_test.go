package servertest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	keelson "github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

type Widget = keelson.Resource[struct {
	Size int32 `json:"size"`
}, struct{}]

func widgets() server.Group {
	return server.Group{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Widget", server.KindOptions[*Widget]{}),
	}}}}
}

// A whole test with a server: create it, and use it.
func TestAFewLinesAreEnough(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	resp, err := srv.Client().Post(srv.URL+"/apis/example.com/v1/namespaces/a/widgets", "application/json", strings.NewReader(`{"metadata":{"name":"w"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusCreated || resp.ProtoMajor != 2 {
		t.Errorf("answered %s over %s", resp.Status, resp.Proto)
	}
}

// answer is what a server said.
type answer struct {
	t    testing.TB
	what string
	code int
	body string
}

// ask sends a request of the administrator; a PATCH is an apply.
func ask(t testing.TB, srv *servertest.Server, method, path, body string) answer {
	t.Helper()
	client := srv.Client()
	defer client.CloseIdleConnections()
	return askBy(t, client, method, srv.URL+path, body)
}

func askBy(t testing.TB, client *http.Client, method, url, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{t, method + " " + url, resp.StatusCode, string(text)}
}

// want fails the test unless the answer has the code, and each of the texts.
func (a answer) want(code int, texts ...string) answer {
	a.t.Helper()
	if a.code != code {
		a.t.Errorf("%s: %d, want %d: %s", a.what, a.code, code, a.body)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) && !strings.Contains(a.body, strings.ReplaceAll(text, `"`, `\"`)) {
			a.t.Errorf("%s: %s is not in %s", a.what, text, a.body)
		}
	}
	return a
}

// not fails the test if the answer has one of the texts.
func (a answer) not(texts ...string) {
	a.t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			a.t.Errorf("%s: %s is in %s", a.what, text, a.body)
		}
	}
}

func TestManyServersInParallel(t *testing.T) {
	t.Parallel()
	for i := range 50 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			srv := servertest.New(t, widgets())
			path := srv.URL + "/apis/example.com/v1/namespaces/a/widgets"
			resp, err := srv.Client().Post(path, "application/json", strings.NewReader(`{"metadata":{"name":"only"}}`))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusCreated { // 409 would be another server's object
				t.Errorf("answered %s", resp.Status)
			}
		})
	}
}

// Everything that may run in a server, and a client that does not read, end with the server.
func TestNothingIsLeftBehind(t *testing.T) { // not parallel: it counts
	before := runtime.NumGoroutine()
	srv := servertest.New(t, widgets())
	client := srv.Client()
	for range 10 {
		resp, err := client.Get(srv.URL + "/apis/example.com/v1/widgets?watch=1")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
	}
	_ = srv.Close()
	client.CloseIdleConnections()
	if !until(func() bool { return runtime.NumGoroutine() <= before }) {
		buf := make([]byte, 1<<16)
		t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
	}
	if _, err := client.Get(srv.URL + "/healthz"); err == nil {
		t.Error("a stopped server answers")
	}
}

// until waits until is returns true; it returns false after a timeout.
func until(is func() bool) bool {
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// recorder is a testing.TB that records failures.
type recorder struct {
	testing.TB
	errors  []string
	cleanup []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Cleanup(f func()) { r.cleanup = append(r.cleanup, f) }

// Without a test, failures are returned as errors.
func TestRun(t *testing.T) {
	t.Parallel()
	srv, err := servertest.Run(server.Options{}, widgets())
	if err != nil {
		t.Fatal(err)
	}
	ask(t, srv, "GET", "/apis/example.com/v1/widgets", "").want(200)
	for range 2 {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}
	for want, parts := range map[string][]server.Extension{
		"served twice":         {widgets(), widgets()},
		"extension is nil":     {nil},
		"is served already":    {widgets(), server.ExtensionFunc(func(h *server.Host) error { return h.Serve(widgets()) })},
		"not ready: exhausted": {server.ExtensionFunc(func(*server.Host) error { return errors.New("not ready: exhausted") })},
	} {
		if srv, err := servertest.Run(server.Options{}, parts...); err == nil {
			t.Errorf("%s: no error; %v", want, srv.Close())
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if srv, err := servertest.Run(server.Options{Serving: server.Serving{Listen: "nowhere"}}); err == nil {
		t.Errorf("no error; %v", srv.Close())
	}
}

// Other processes reach the server over the network.
func TestListen(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	url, err := srv.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := srv.Listen(t.Context()); err != nil || again != url {
		t.Errorf("again: %s, %v", again, err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(srv.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	askBy(t, &http.Client{Transport: transport}, "GET", url+"/version", "").want(200)
	ask(t, srv, "GET", "/version", "").want(200)
	text, err := os.ReadFile(srv.Kubeconfig(t))
	if err != nil || !strings.Contains(string(text), "server: "+url) {
		t.Errorf("%v: %s", err, text)
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if resp, err := (&http.Client{Transport: transport}).Get(url + "/version"); err == nil {
		_ = resp.Body.Close()
		t.Error("a closed server answers")
	}
	if _, err := srv.Listen(t.Context()); err != nil {
		t.Errorf("the address is known still: %v", err)
	}
	closed := servertest.New(t)
	_ = closed.Close()
	if url, err := closed.Listen(t.Context()); err == nil {
		t.Errorf("a closed server listens at %s", url)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	const path = "/apis/example.com/v1/widgets"
	for name, c := range map[string]struct {
		client *http.Client
		code   int
	}{
		"administrator": {srv.Client(), 200},
		"master":        {srv.ClientOf(srv.AddUser(authn.User{Name: "anna", Groups: []string{"system:masters"}})), 200},
		"nobody much":   {srv.ClientOf(srv.AddUser(authn.User{Name: "bob"})), 403},
		"anonymous":     {srv.Anonymous(), 403},
		"unknown":       {srv.ClientOf("guessed"), 401},
	} {
		a := askBy(t, c.client, "GET", srv.URL+path, "").want(c.code)
		if name == "nobody much" {
			a.want(403, `User "bob"`)
			for _, path := range []string{"/apis", "/apis/example.com/v1", "/openapi/v3", "/version"} { // kubectl needs them
				askBy(t, c.client, "GET", srv.URL+path, "").want(200)
			}
		}
		c.client.CloseIdleConnections()
	}
	// The program's users and the administrator of this package are both authenticated.
	own := authn.BearerToken(authn.StaticTokens(map[string]authn.User{"carol's": {Name: "carol"}}))
	srv = servertest.Start(t, server.Options{Policy: server.Policy{Authenticator: own}, Groups: []server.Group{widgets()}})
	ask(t, srv, "GET", path, "").want(200)
	for token, want := range map[string]string{"carol's": `User "carol"`, srv.AddUser(authn.User{Name: "dan"}): `User "dan"`} {
		client := srv.ClientOf(token)
		askBy(t, client, "GET", srv.URL+path, "").want(403, want)
		client.CloseIdleConnections()
	}
}

// A new client for each request does not need a new connection for each request.
func TestClientsShareTheirConnections(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	for i, c := range []*http.Client{srv.Client(), srv.Client(), srv.ClientOf(srv.AddUser(authn.User{Name: "anna"})), srv.Anonymous()} {
		var got httptrace.GotConnInfo
		trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { got = info }})
		r, err := http.NewRequestWithContext(trace, http.MethodGet, srv.URL+"/version", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if got.Reused != (i > 0) {
			t.Errorf("client %d: reused: %t", i, got.Reused)
		}
	}
}

func TestAUserWithoutAName(t *testing.T) {
	t.Parallel()
	srv, err := servertest.Run(server.Options{}, widgets())
	if err != nil {
		t.Fatal(err)
	}
	srv.AddUser(authn.User{Groups: []string{"system:masters"}})
	if err := srv.Close(); err == nil || !strings.Contains(err.Error(), "AddUser at servertest_test.go:") {
		t.Errorf("%v", err)
	}
}

// The clock of creation timestamps is an option; all other times are real.
func TestNow(t *testing.T) {
	t.Parallel()
	at := time.Date(2020, 2, 29, 12, 0, 0, 0, time.UTC)
	srv := servertest.Start(t, server.Options{Now: func() time.Time { return at }}, widgets())
	ask(t, srv, "POST", "/apis/example.com/v1/namespaces/a/widgets", `{"metadata":{"name":"w"}}`).want(201, `"creationTimestamp":"2020-02-29T12:00:00Z"`)
	at = at.Add(24 * time.Hour)
	ask(t, srv, "POST", "/apis/example.com/v1/namespaces/a/widgets", `{"metadata":{"name":"x"}}`).want(201, `"creationTimestamp":"2020-03-01T12:00:00Z"`)
}

func TestALeakFailsTheTest(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	release := make(chan struct{})
	defer close(release)
	srv := servertest.Start(r, server.Options{})
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		h.Go(func(context.Context) { go func() { <-release }() }) // a goroutine that nothing waits for
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.cleanup {
		f()
	}
	if len(r.errors) != 1 || !strings.Contains(r.errors[0], "left goroutines behind") {
		t.Errorf("the leak was not reported: %q", r.errors)
	}
}
