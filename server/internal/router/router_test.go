package router_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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
	if got := fmt.Sprint(table.Resources()); got != fmt.Sprint([]schema.GroupVersionResource{pods, gadgets}) {
		t.Errorf("resources: %s", got)
	}
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
