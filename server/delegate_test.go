package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	farVersion    = schema.GroupVersion{Group: "far.example.com", Version: "v1"}
	widgetVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}
)

// says is a handler that answers with its name and the path, and counts requests.
type says struct {
	name  string
	asked atomic.Int32
}

func (s *says) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	fmt.Fprint(w, s.name, " ", r.URL.Path)
}

func TestDelegate(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	far, core := &says{name: "far"}, &says{name: "core"}
	paths := []string{"/apis/far.example.com/v1", "/apis/far.example.com/v1/things", "/apis/far.example.com/v1/namespaces/a/things/b/scale"}
	answered := func(when, want string, paths ...string) {
		t.Helper()
		for _, path := range paths {
			if code, body := call(t, srv.Client(), "GET", srv.URL+path, ""); code == 404 && want == "" || code == 200 && want != "" && body == want+" "+path {
				continue
			} else {
				t.Errorf("%s: %s is answered with %d %s", when, path, code, body)
			}
		}
	}
	refusal := errors.New("not today")
	install := func(end error) error {
		return srv.Install(server.ExtensionFunc(func(h *server.Host) error {
			err := errors.Join(h.Delegate(farVersion, far), h.Delegate(schema.GroupVersion{Version: "v2"}, core))
			answered("while it is installed", "", paths...)
			for name, h := range map[string]*server.Host{"the same host": h, "another host": host(t, srv)} {
				if err := h.Serve(stampGroup("far.example.com")); !errors.Is(err, server.ErrServed) {
					t.Errorf("%s serves in a version that is to be delegated: %v", name, err)
				}
			}
			if err := host(t, srv).Delegate(farVersion, core); err == nil || !strings.Contains(err.Error(), "another extension") {
				t.Errorf("another host delegates it: %v", err)
			}
			return errors.Join(err, end)
		}))
	}
	if err := install(refusal); !errors.Is(err, refusal) {
		t.Fatal(err)
	}
	answered("after Install failed", "", paths...)
	if err := install(nil); err != nil {
		t.Fatal(err)
	}
	answered("after Install", "far", paths...)
	answered("after Install", "core", "/api/v2", "/api/v2/pods")
	answered("other versions", "", "/apis/far.example.com/v2", "/apis/far.example.com/v2/things", "/api/v1", "/api/v1/pods")
	if code, body := call(t, srv.Client(), "POST", srv.URL+paths[1], "{}"); code != 200 || body != "far "+paths[1] {
		t.Errorf("POST: %d %s", code, body)
	}

	h := host(t, srv)
	if err := h.Delegate(widgetVersion, far); !errors.Is(err, server.ErrServed) {
		t.Errorf("delegated what is served: %v", err)
	}
	if err := h.Serve(stampGroup("far.example.com")); !errors.Is(err, server.ErrServed) {
		t.Errorf("served what is delegated: %v", err)
	}
	for _, gv := range []schema.GroupVersion{{}, {Group: "far.example.com"}, {Group: "a/b", Version: "v1"}, {Group: "far.example.com", Version: "v/1"}} {
		if err := h.Delegate(gv, far); err == nil {
			t.Errorf("delegated %q", gv)
		}
	}
	if err := h.Delegate(farVersion, nil); err == nil {
		t.Error("delegated to nil")
	}
	if err := errors.Join(h.Delegate(farVersion, core), h.RemoveDelegate(schema.GroupVersion{Version: "v2"}), h.RemoveDelegate(schema.GroupVersion{Version: "v3"})); err != nil {
		t.Fatal(err)
	}
	answered("replaced", "core", paths...)
	answered("removed", "", "/api/v2", "/api/v2/pods")
	if err := h.RemoveDelegate(farVersion); err != nil {
		t.Fatal(err)
	}
	answered("removed", "", paths...)
	if err := h.Serve(stampGroup("far.example.com")); err != nil {
		t.Errorf("what is delegated no longer cannot be served: %v", err)
	}
}

// One Install delegates a version that the server served itself, and another ends that.
func TestDelegateInsteadOfOwn(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	far := &says{name: "far"}
	away := server.ExtensionFunc(func(h *server.Host) error {
		return errors.Join(h.Withdraw(widgetsResource()), h.Delegate(widgetVersion, far))
	})
	back := server.ExtensionFunc(func(h *server.Host) error {
		group := widgets()
		group.Scheme = runtime.NewScheme()
		return errors.Join(h.RemoveDelegate(widgetVersion), h.Serve(group))
	})
	for _, step := range []struct {
		x    server.Extension
		want string
	}{{away, "far " + widgetsPath}, {back, `"WidgetList"`}, {away, "far " + widgetsPath}} {
		if err := srv.Install(step.x); err != nil {
			t.Fatal(err)
		}
		if code, body := call(t, srv.Client(), "GET", srv.URL+widgetsPath, ""); code != 200 || !strings.Contains(body, step.want) {
			t.Errorf("%d %s, want %s", code, body, step.want)
		}
	}
}

// A delegate gets only requests that are authenticated and authorized, for its discovery and for its resources.
func TestDelegateIsGuarded(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	far := &says{name: "far"}
	reader := srv.ClientOf(srv.AddUser(authn.User{Name: "reader"}))
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		return errors.Join(h.Delegate(farVersion, far), h.Authorize("far", authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
			if a.User.Name == "reader" && a.APIGroup == farVersion.Group && a.Verb == "get" && a.Resource == "things" {
				return authz.Allow, "", nil
			}
			return authz.NoOpinion, "", nil
		})))
	}))
	if err != nil {
		t.Fatal(err)
	}
	const things = "/apis/far.example.com/v1/things"
	for _, c := range []struct {
		client       *http.Client
		method, path string
		want         int
	}{
		{srv.Anonymous(), "GET", "/apis/far.example.com/v1", 403},
		{srv.Anonymous(), "GET", things + "/a", 403},
		{srv.ClientOf("wrong"), "GET", things + "/a", 401},
		{reader, "GET", "/apis/far.example.com/v1", 200}, // authenticated users may read discovery
		{reader, "GET", things + "/a", 200},
		{reader, "GET", things, 403},
		{reader, "DELETE", things + "/a", 403},
		{reader, "GET", "/apis/far.example.com/v1/others/a", 403},
		{reader, "GET", things + "/../others/a", 404},
		{reader, "GET", things + "/..%2Fothers", 404},
		{srv.Client(), "GET", things + "/../others/a", 404},
	} {
		before := far.asked.Load()
		code, body := call(t, c.client, c.method, srv.URL+c.path, "")
		if asked := far.asked.Load() > before; code != c.want || asked != (code == 200) {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, code, body, c.want)
		}
	}
}

func TestDelegateIsReplacedWhileItServes(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	h := host(t, srv)
	handlers := []*says{{name: "far 0"}, {name: "far 1"}}
	if err := h.Delegate(farVersion, handlers[0]); err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	var all sync.WaitGroup
	for _, path := range []string{"/apis/far.example.com/v1", "/apis/far.example.com/v1/things", widgetsPath} {
		all.Go(func() {
			for !over.Load() && !t.Failed() {
				code, body := tryCall(t, srv.Client(), "GET", srv.URL+path, "")
				if code != 200 || strings.HasPrefix(body, "far") == (path == widgetsPath) {
					t.Errorf("%s: %d %s", path, code, body)
				}
			}
		})
	}
	for i := range 100 {
		if err := h.Delegate(farVersion, handlers[i%2]); err != nil {
			t.Error(err)
		}
	}
	over.Store(true)
	all.Wait()
}

func TestNotFoundHandlers(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	reader := srv.ClientOf(srv.AddUser(authn.User{Name: "reader"}))
	nowhere := []string{"/nope", "/healthz/nope", "/apis/nope.example.com", "/apis/example.com/v9/widgets", "/apis/example.com/v1/gadgets", "/openapi/v3/apis/nope/v1"}
	ask := func(c *http.Client, path string) string {
		t.Helper()
		code, body := call(t, c, "GET", srv.URL+path, "")
		return fmt.Sprint(code, " ", strings.TrimSpace(body))
	}
	var asked atomic.Int32
	serve := func(prefix, answer string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			asked.Add(1)
			if !strings.HasPrefix(r.URL.Path, prefix) {
				return false
			}
			fmt.Fprint(w, answer)
			return true
		}
	}
	last := map[string]string{}
	for _, path := range nowhere {
		if last[path] = ask(srv.Client(), path); !strings.HasPrefix(last[path], "404") {
			t.Fatalf("%s: %s", path, last[path])
		}
	}
	answers := func(when string, want func(path string) string) {
		t.Helper()
		for _, path := range nowhere {
			if got := ask(srv.Client(), path); got != want(path) {
				t.Errorf("%s: %s: %s\nwant %s", when, path, got, want(path))
			}
		}
	}
	ofServer := func(path string) string { return last[path] }
	failure := errors.New("not today")
	install := func(end error) error {
		return srv.Install(server.ExtensionFunc(func(h *server.Host) error {
			err := errors.Join(h.NotFound("apis", serve("/apis", "first")), h.NotFound("all", serve("/", "second")))
			answers("while it is installed", ofServer)
			return errors.Join(err, end)
		}))
	}
	if err := install(failure); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	answers("after Install failed", ofServer)
	if n := asked.Load(); n != 0 {
		t.Errorf("handlers that are not installed are asked %d times", n)
	}
	if err := install(nil); err != nil {
		t.Fatal(err)
	}
	answers("in order", func(path string) string {
		if strings.HasPrefix(path, "/apis") {
			return "200 first"
		}
		return "200 second"
	})
	before := asked.Load()
	for _, path := range []string{"/version", "/apis", widgetsPath} {
		if got := ask(srv.Client(), path); !strings.HasPrefix(got, "200 {") {
			t.Errorf("%s: %s", path, got)
		}
	}
	for _, path := range []string{"/nope", "/apis/example.com/v1/gadgets"} {
		if got := ask(reader, path); !strings.HasPrefix(got, "403") {
			t.Errorf("%s of somebody who may not: %s", path, got)
		}
	}
	// A path that a handler which cleans paths would read as another one reaches no handler.
	for _, path := range []string{"/apis/../nope", "/apis/%2e%2e/nope", "/apis//nope.example.com", "/./nope", "/nope/../../secret"} {
		if got := askRaw(t, srv, path); !strings.HasPrefix(got, "404") && !strings.HasPrefix(got, "403") {
			t.Errorf("%s: %s", path, got)
		}
	}
	for _, path := range []string{"/%68ealthz", "/%76ersion", "/%61pis"} { // a path is served as it was authorized
		if got := askRaw(t, srv, path); !strings.HasPrefix(got, "200 ") {
			t.Errorf("%s: %s", path, got)
		}
	}
	if n := asked.Load() - before; n != 0 {
		t.Errorf("handlers are asked %d times about what is there, forbidden, or read in two ways", n)
	}
	h := host(t, srv)
	if err := h.NotFound("apis", serve("/nope", "third")); err != nil {
		t.Fatal(err)
	}
	if got := ask(srv.Client(), "/nope") + ask(srv.Client(), "/apis/nope.example.com"); got != "200 third200 second" {
		t.Errorf("replaced: %s", got)
	}
	if err := errors.Join(h.RemoveNotFound("all"), h.RemoveNotFound("apis"), h.RemoveNotFound("none")); err != nil {
		t.Fatal(err)
	}
	answers("removed", ofServer)
	if h.NotFound("", serve("/", "")) == nil || h.NotFound("name", nil) == nil {
		t.Error("a handler without a name, or nil, is taken")
	}
}

// askRaw sends a path as it is written.
func askRaw(t *testing.T, srv *servertest.Server, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = path
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(resp.StatusCode, " ", string(body))
}
