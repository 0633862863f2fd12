package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage/bolt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type WidgetSpec struct {
	Size     int32  `json:"size,omitempty"`
	Color    string `json:"color,omitempty"`
	Replicas int32  `json:"replicas,omitempty"`
}

type WidgetStatus struct {
	Ready    bool  `json:"ready,omitempty"`
	Replicas int32 `json:"replicas,omitempty"`
}

type Widget = runtime.Resource[WidgetSpec, WidgetStatus]

func widgets() server.Group {
	return server.Group{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Widget", server.KindOptions[*Widget]{
			ShortNames: []string{"wd"}, Categories: []string{"all"},
			Scale: &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"},
		}),
	}}}}
}

const widgetsPath = "/apis/example.com/v1/namespaces/default/widgets"

// call makes a request and returns the code and the body.
func call(t *testing.T, c *http.Client, method, url, body string, header ...string) (int, string) {
	t.Helper()
	a := roundTrip(t, c, method, url, body, header...)
	return a.code, a.body
}

func wantCode(t *testing.T, want, code int, body string) {
	t.Helper()
	if code != want {
		t.Fatalf("code %d, want %d; body: %s", code, want, body)
	}
}

func TestServerServesAGoStruct(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	c := srv.Client()
	code, body := call(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"},"spec":{"size":3}}`)
	wantCode(t, 201, code, body)
	if !strings.HasPrefix(body, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","namespace":"default","uid":"`) {
		t.Errorf("created: %s", body)
	}
	code, got := call(t, c, "GET", srv.URL+widgetsPath+"/a", "")
	wantCode(t, 200, code, got)
	if got != body {
		t.Errorf("GET answers %s, POST had answered %s", got, body)
	}
	code, list := call(t, c, "GET", srv.URL+widgetsPath, "")
	wantCode(t, 200, code, list)
	item := strings.TrimSuffix(strings.Replace(body, `"kind":"Widget","apiVersion":"example.com/v1",`, "", 1), "\n")
	if !strings.HasPrefix(list, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"`) || !strings.HasSuffix(list, `"items":[`+item+"]}\n") {
		t.Errorf("list: %s\nwant the item %s", list, item)
	}
	code, status := call(t, c, "DELETE", srv.URL+widgetsPath+"/a", "")
	wantCode(t, 200, code, status)
	if !strings.Contains(status, `"status":"Success","details":{"name":"a","group":"example.com","kind":"widgets","uid":"`) {
		t.Errorf("deleted: %s", status)
	}
	code, body = call(t, c, "GET", srv.URL+widgetsPath+"/a", "")
	wantCode(t, 404, code, body)
	if !strings.Contains(body, `"message":"widgets.example.com \"a\" not found"`) {
		t.Errorf("not found: %s", body)
	}
}

func TestTwoServersDoNotTouchEachOther(t *testing.T) {
	t.Parallel()
	one, two := servertest.New(t, widgets()), servertest.New(t, widgets())
	code, body := call(t, one.Client(), "POST", one.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
	wantCode(t, 201, code, body)
	code, body = call(t, two.Client(), "GET", two.URL+widgetsPath+"/a", "")
	wantCode(t, 404, code, body)
	_ = one.Close()
	code, body = call(t, two.Client(), "GET", two.URL+"/readyz", "")
	wantCode(t, 200, code, body)
	if one.Token == two.Token {
		t.Error("two servers have one token")
	}
}

func TestHandlerInAForeignServer(t *testing.T) {
	t.Parallel()
	srv, err := server.New(server.Options{Groups: []server.Group{widgets()}})
	if err != nil {
		t.Fatal(err)
	}
	foreign := httptest.NewServer(srv.Handler())
	defer foreign.Close()
	token := "Bearer " + srv.Credentials().Token
	code, body := call(t, foreign.Client(), "POST", foreign.URL+widgetsPath, `{"metadata":{"name":"a"}}`, "Authorization", token)
	wantCode(t, 201, code, body)
	code, body = call(t, foreign.Client(), "GET", foreign.URL+"/readyz", "")
	wantCode(t, 200, code, body)
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	code, body = call(t, foreign.Client(), "GET", foreign.URL+"/readyz", "")
	wantCode(t, 500, code, body)
	code, body = call(t, foreign.Client(), "GET", foreign.URL+widgetsPath, "", "Authorization", token)
	if code < 500 {
		t.Errorf("after Close: %d %s", code, body)
	}
}

// moons is a computed storage that implements only Getter and Lister.
type moons struct{}

type Moon = runtime.Resource[struct {
	Planet string `json:"planet"`
}, struct{}]

func (moons) one(name string) *Moon {
	m := &Moon{}
	m.Name, m.Spec.Planet = name, "mars"
	return m
}

func (m moons) Get(_ *registry.Call, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return m.one(name), nil
}

func (m moons) List(*registry.Call, *metav1.ListOptions) (runtime.Object, error) {
	return &runtime.List[Moon]{Items: []Moon{*m.one("phobos"), *m.one("deimos")}}, nil
}

func TestComputedResourceHasExactlyItsVerbs(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, server.Group{Name: "sky.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Moon", server.KindOptions[*Moon]{ClusterScoped: true, Storage: moons{}}),
	}}}})
	c := srv.Client()
	code, body := call(t, c, "GET", srv.URL+"/apis/sky.example.com/v1/moons/io", "")
	wantCode(t, 200, code, body)
	if want := `{"kind":"Moon","apiVersion":"sky.example.com/v1","metadata":{"name":"io"},"spec":{"planet":"mars"}}` + "\n"; body != want {
		t.Errorf("got  %swant %s", body, want)
	}
	code, body = call(t, c, "GET", srv.URL+"/apis/sky.example.com/v1/moons", "")
	wantCode(t, 200, code, body)
	if !strings.Contains(body, `"items":[{"metadata":{"name":"phobos"}`) {
		t.Errorf("list: %s", body)
	}
	for _, method := range []string{"POST", "DELETE"} {
		code, body = call(t, c, method, srv.URL+"/apis/sky.example.com/v1/moons", "{}")
		wantCode(t, 405, code, body)
	}
	for _, method := range []string{"PUT", "PATCH", "DELETE"} {
		code, body = call(t, c, method, srv.URL+"/apis/sky.example.com/v1/moons/io", "{}", "Content-Type", "application/merge-patch+json")
		wantCode(t, 405, code, body)
	}
	code, body = call(t, c, "GET", srv.URL+"/apis/sky.example.com/v1/moons?watch=1", "")
	wantCode(t, 405, code, body)
	var list metav1.APIResourceList
	code, body = call(t, c, "GET", srv.URL+"/apis/sky.example.com/v1", "")
	wantCode(t, 200, code, body)
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(list.APIResources[0].Verbs); got != "[get list]" {
		t.Errorf("verbs %s", got)
	}
}

func TestAnonymousMayAskForHealthAndVersionOnly(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	c := srv.Anonymous()
	for path, want := range map[string]int{
		"/healthz": 200, "/livez": 200, "/readyz": 200, "/version": 200, "/version/": 200,
		"/": 403, "/readyz/ping": 403, "/livez/storage": 403, "/readyz/": 403, "/api": 403, "/apis": 403, "/apis/example.com/v1": 403, "/openapi/v3": 403, widgetsPath: 403, "/metrics": 403,
	} {
		code, body := call(t, c, "GET", srv.URL+path, "")
		if code != want {
			t.Errorf("GET %s: %d, want %d: %s", path, code, want, body)
		}
	}
	code, body := call(t, c, "GET", srv.URL+widgetsPath, "")
	wantCode(t, 403, code, body)
	if want := `widgets.example.com is forbidden: User \"system:anonymous\" cannot list resource \"widgets\" in API group \"example.com\" in the namespace \"default\"`; !strings.Contains(body, want) {
		t.Errorf("body %s\nwant %s", body, want)
	}
	code, body = call(t, c, "GET", srv.URL+"/version", "", "Authorization", "Bearer wrong")
	wantCode(t, 401, code, body)
}

func TestHealthReports(t *testing.T) {
	t.Parallel()
	broken := errors.New("the pump is broken")
	srv := servertest.Start(t, server.Options{Observe: server.Observe{Checks: []server.Check{{Name: "pump", Check: func(context.Context) error { return nil }}}}})
	c := srv.Client()
	code, body := call(t, c, "GET", srv.URL+"/readyz?verbose&exclude=pump&exclude=foo", "")
	wantCode(t, 200, code, body)
	want := "[+]ping ok\n[+]storage ok\n[+]cache-readiness ok\n[+]shutdown ok\n[+]pump excluded: ok\nwarn: some health checks cannot be excluded: no matches for \"foo\"\nreadyz check passed\n"
	if body != want {
		t.Errorf("got\n%swant\n%s", body, want)
	}
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		return h.Check(server.Check{Name: "second-pump", Check: func(context.Context) error { return broken }})
	}))
	if err != nil {
		t.Fatal(err)
	}
	code, body = call(t, c, "GET", srv.URL+"/livez", "")
	wantCode(t, 500, code, body)
	if !strings.Contains(body, "[-]second-pump failed: reason withheld\n") || strings.Contains(body, broken.Error()) {
		t.Errorf("livez: %s", body)
	}
	code, body = call(t, c, "GET", srv.URL+"/livez/second-pump", "")
	wantCode(t, 500, code, body)
	if body != "internal server error: the pump is broken\n" {
		t.Errorf("livez/second-pump: %s", body)
	}
	code, body = call(t, c, "GET", srv.URL+"/livez/none", "")
	if code != 404 {
		t.Errorf("livez/none: %d %s", code, body)
	}
}

func TestExtensionAddsGroupsPathsAndWork(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	ended := make(chan struct{})
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		h.Go(func(ctx context.Context) { <-ctx.Done(); close(ended) })
		return errors.Join(
			h.Serve(widgets()),
			h.Handle("/motor/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "brrr") })),
		)
	}))
	if err != nil {
		t.Fatal(err)
	}
	code, body := call(t, srv.Client(), "GET", srv.URL+widgetsPath, "")
	wantCode(t, 200, code, body)
	code, body = call(t, srv.Client(), "GET", srv.URL+"/motor/speed", "")
	wantCode(t, 200, code, body)
	code, body = call(t, srv.Client(), "GET", srv.URL+"/", "")
	wantCode(t, 200, code, body)
	for _, path := range []string{`"/apis/example.com/v1"`, `"/motor"`, `"/readyz/ping"`} {
		if !strings.Contains(body, path) {
			t.Errorf("index lacks %s: %s", path, body)
		}
	}
	twice := srv.Install(server.ExtensionFunc(func(h *server.Host) error { return h.Serve(widgets()) }))
	if twice == nil {
		t.Error("a resource could be served twice")
	}
	taken := srv.Install(server.ExtensionFunc(func(h *server.Host) error { return h.Handle("/apis/x", nil) }))
	if taken == nil {
		t.Error("a path of the API could be taken")
	}
	_ = srv.Close()
	<-ended
}

// TestOnClose has a request in flight when the server ends. The functions given to OnClose are called after it, and after the
// background work, the latest first.
func TestOnClose(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var order []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	var host *server.Host
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		host = h
		h.OnClose(func() { note("first") })
		h.OnClose(func() { note("second") })
		h.Go(func(ctx context.Context) {
			<-ctx.Done()
			note("work")
			close(leave) // the server has begun to end, and the request continues
		})
		return h.Handle("/slow", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-leave
			note("request")
			w.WriteHeader(http.StatusTeapot)
		}))
	}))
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan int)
	go func() {
		defer close(answered)
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/slow", nil)
		if err != nil {
			return
		}
		if resp, err := srv.Client().Do(req); err == nil {
			resp.Body.Close()
			answered <- resp.StatusCode
		}
	}()
	<-entered
	_ = srv.Close()
	if code := <-answered; code != http.StatusTeapot {
		t.Errorf("the request was answered by %d", code)
	}
	host.OnClose(func() { note("late") })
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(order, " "); got != "work request second first late" {
		t.Errorf("order: %s", got)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	one := func(r ...server.Resource) server.Options {
		return server.Options{Groups: []server.Group{{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: r}}}}}
	}
	type Bad struct{ Widget }
	for name, c := range map[string]struct {
		opts server.Options
		want string
	}{
		"zero resource":       {one(server.Resource{}), "make it with server.Kind"},
		"no kind":             {one(server.Kind("", server.KindOptions[*Widget]{})), "must not be empty"},
		"twice":               {one(server.Kind("Widget", server.KindOptions[*Widget]{}), server.Kind("Gadget", server.KindOptions[*Widget]{})), "Go type of its own"},
		"embedding":           {one(server.Kind("Bad", server.KindOptions[*Bad]{})), "DeepCopyObject"},
		"scale path":          {one(server.Kind("Widget", server.KindOptions[*Widget]{Scale: &registry.Scale{SpecReplicas: ".spec.none", StatusReplicas: ".status.replicas"}})), ".spec.none"},
		"selectable field":    {one(server.Kind("Widget", server.KindOptions[*Widget]{SelectableFields: []string{"spec.none"}})), "spec.none"},
		"computed and scaled": {one(server.Kind("Widget", server.KindOptions[*Widget]{Storage: moons{}, Scale: &registry.Scale{}})), "mean nothing"},
		"status taken":        {one(server.Kind("Widget", server.KindOptions[*Widget]{Subresources: map[string]server.Subresource{"status": {Storage: moons{}}}})), "NoStatus"},
		"listen":              {server.Options{Serving: server.Serving{Listen: "nowhere"}}, "host:port"},
		"proxy":               {server.Options{Serving: server.Serving{Proxies: []netip.Prefix{{}}}}, "Serving.Proxies has a zero"},
		"storage":             {server.Options{Storage: bolt.At(filepath.Join(t.TempDir(), "missing", "x.db"))}, "missing"},
	} {
		srv, err := server.New(c.opts)
		if err == nil {
			_ = srv.Close()
			t.Errorf("%s: no error", name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant it to name %q", name, err, c.want)
		}
	}
}

func TestStatusCanBeAnOrdinaryField(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, server.Group{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Widget", server.KindOptions[*Widget]{NoStatus: true}),
	}}}})
	c := srv.Client()
	code, body := call(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"},"status":{"ready":true}}`)
	wantCode(t, 201, code, body)
	if !strings.HasSuffix(body, `"status":{"ready":true}}`+"\n") {
		t.Errorf("created: %s", body)
	}
	code, body = call(t, c, "PUT", srv.URL+widgetsPath+"/a", `{"metadata":{"name":"a"},"status":{"replicas":2}}`)
	wantCode(t, 200, code, body)
	if !strings.Contains(body, `"generation":2`) || !strings.HasSuffix(body, `"status":{"replicas":2}}`+"\n") {
		t.Errorf("updated: %s", body)
	}
	code, body = call(t, c, "GET", srv.URL+widgetsPath+"/a/status", "")
	wantCode(t, 404, code, body)
}
