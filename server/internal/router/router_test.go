package router_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/server/internal/router"
	"github.com/keelson-dev/keelson/server/request"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func text(s string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s) })
}

// ask sends a request with its info through h and returns the body.
func ask(h http.Handler, path string) string {
	r := httptest.NewRequest("GET", path, nil)
	if info, err := request.Resolve(r); err == nil {
		r = r.WithContext(request.WithInfo(r.Context(), info))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String()
}

var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	gadgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

func TestTableFindsAndForgets(t *testing.T) {
	var table router.Table
	h := table.Handler(text("rest"))
	if got := ask(h, "/apis/example.com/v1/widgets"); got != "rest" {
		t.Errorf("empty table: %s", got)
	}
	table.Set(map[schema.GroupVersionResource]http.Handler{widgets: text("widgets"), pods: text("pods")})
	for path, want := range map[string]string{
		"/apis/example.com/v1/widgets":                      "widgets",
		"/apis/example.com/v1/namespaces/a/widgets/b/scale": "widgets",
		"/apis/example.com/v2/widgets":                      "rest",
		"/apis/other.com/v1/widgets":                        "rest",
		"/api/v1/pods":                                      "pods",
		"/apis/example.com/v1":                              "rest",
		"/healthz":                                          "rest",
		"/apis//v1/pods":                                    "rest",
	} {
		if got := ask(h, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	table.Set(map[schema.GroupVersionResource]http.Handler{widgets: nil, gadgets: text("gadgets")})
	if got := ask(h, "/apis/example.com/v1/widgets"); got != "rest" {
		t.Errorf("after removal: %s", got)
	}
	if got := ask(h, "/apis/example.com/v1/gadgets") + ask(h, "/api/v1/pods"); got != "gadgetspods" {
		t.Errorf("what stays, and what is new: %s", got)
	}
}

func TestGroupVersionAsAWhole(t *testing.T) {
	var table router.Table
	h := table.Handler(text("rest"))
	whole := router.Routes{{Group: "example.com", Version: "v1"}: text("whole"), {Version: "v2"}: text("core")}
	table.Set(router.Routes{widgets: text("widgets"), pods: text("pods")})
	table.Set(whole)
	for path, want := range map[string]string{
		"/apis/example.com/v1":                              "whole",
		"/apis/example.com/v1/":                             "whole",
		"/apis/example.com/v1/widgets":                      "whole", // has precedence over the resource
		"/apis/example.com/v1/namespaces/a/others/b/status": "whole",
		"/api/v2":                      "core",
		"/api/v2/pods":                 "core",
		"/api/v1/pods":                 "pods",
		"/api/v1":                      "rest",
		"/apis/example.com":            "rest",
		"/apis/example.com/v2":         "rest",
		"/apis/example.com/v2/widgets": "rest",
		"/apis//v2":                    "rest",
		"/apis//v2/pods":               "rest",
		"/api/example.com/v1":          "rest",
		// Paths that a handler might read in another way than the authorizer.
		"//apis/example.com/v1":                            "rest",
		"/apis/example.com/v1//widgets":                    "rest",
		"/apis/example.com/v1/namespaces//widgets":         "rest",
		"/apis/example.com/v1/widgets/../others":           "rest",
		"/apis/example.com/v1/widgets/a%2Fstatus":          "rest",
		"/apis/example.com/v1/namespaces/a%2Fwidgets/b":    "rest",
		"/apis/example.com/v1/namespaces/a%2Fothers":       "rest",
		"/apis/example.com/v1/namespaces/a/widgets/%2E%2E": "rest",
	} {
		if got := ask(h, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	for key, want := range map[schema.GroupVersionResource]bool{
		widgets: true, gadgets: true, pods: true, {Version: "v1", Resource: "nodes"}: false,
		{Version: "v1"}: true, {Version: "v2"}: true, {Version: "v3"}: false,
	} {
		if got := table.Serves(key); got != want {
			t.Errorf("serves %s: %t", key, got)
		}
	}
	for key := range whole {
		whole[key] = nil
	}
	table.Set(whole)
	if got := ask(h, "/apis/example.com/v1/widgets") + ask(h, "/apis/example.com/v1"); got != "widgetsrest" {
		t.Errorf("afterwards: %s", got)
	}
}

func TestNotFoundChain(t *testing.T) {
	var table router.Table
	member := func(name, path, answer string) router.NotFound {
		return router.NotFound{Name: name, Serve: func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, path) {
				return false
			}
			fmt.Fprint(w, answer)
			return true
		}}
	}
	h := table.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !table.NotFound(w, r) {
			fmt.Fprint(w, "404")
		}
	}))
	wants := func(what, a, ab, c, pods string) {
		t.Helper()
		got := fmt.Sprint(ask(h, "/a"), " ", ask(h, "/a/b"), " ", ask(h, "/c"), " ", ask(h, "/api/v1/pods"))
		if want := fmt.Sprint(a, " ", ab, " ", c, " ", pods); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	wants("empty", "404", "404", "404", "404")
	table.Set(router.Routes{pods: text("pods")}, member("first", "/a/b", "1"), member("second", "/a", "2"))
	wants("two", "2", "1", "404", "pods")
	table.Set(nil, member("third", "/", "3"), member("first", "/a", "1"))
	wants("the first replaced", "1", "1", "3", "pods")
	table.Set(router.Routes{pods: nil}, router.NotFound{Name: "first"}, router.NotFound{Name: "none"})
	wants("the first removed", "2", "2", "3", "2")
}

func TestTableChangesWhileItServes(t *testing.T) {
	var table router.Table
	h := table.Handler(text("rest"))
	table.Set(map[schema.GroupVersionResource]http.Handler{pods: text("pods")})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 200 {
				if i == 0 {
					table.Set(map[schema.GroupVersionResource]http.Handler{widgets: text("widgets")})
					table.Set(map[schema.GroupVersionResource]http.Handler{widgets: nil})
				} else if got := ask(h, "/api/v1/pods"); got != "pods" {
					t.Errorf("a change of one route hid another: %s", got)
				}
			}
		})
	}
	wg.Wait()
}
