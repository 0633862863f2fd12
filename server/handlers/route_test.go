package handlers_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMethodsNotSupported(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	for _, c := range []struct{ method, target, action string }{
		{"POST", all, "create"},
		{"DELETE", all, "deletecollection"},
		{"PUT", base, "update"},
		{"PATCH", base, "patch"},
		{"POST", base + "/a", "create"},
		{"POST", base + "/a/status", "create"},
		{"DELETE", base + "/a/status", "delete"},
		{"OPTIONS", base, ""},
		{"TRACE", base + "/a", ""},
		{"POST", "/apis/example.com/v1/watch/widgets", "create"},
	} {
		w := h.ask(c.method, c.target, "")
		wantStatus(t, w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
			c.action+` is not supported on resources of kind "widgets.example.com"`)
	}
}

// noSuchResource is the message of kube-apiserver for a path below a group that it serves.
const noSuchResource = "the server could not find the requested resource"

func TestUnknownPaths(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	for _, target := range []string{
		"/", "/apis", "/apis/example.com/v1", "/apis/example.com/v1/gadgets", "/apis/example.com/v2/widgets", "/apis/other.io/v1/widgets",
		"/api/v1/widgets", all + "/a", base + "/a/status/more", base + "/a/none/more", "/apis/example.com/v1/watch/namespaces/default/widgets/a/status",
	} {
		wantStatus(t, h.ask("GET", target, ""), http.StatusNotFound, metav1.StatusReasonNotFound, noSuchResource)
	}
	wantStatus(t, h.ask("GET", base+"/a/none", ""), http.StatusNotFound, metav1.StatusReasonNotFound, noSuchResource)
}

func TestClusterScopedHasNoNamespace(t *testing.T) {
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Namespaced = false }})
	wantStatus(t, h.ask("GET", base, ""), http.StatusNotFound, metav1.StatusReasonNotFound, noSuchResource)
	if w := h.ask("GET", all, ""); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A name that no object can have is refused after the method and the body are checked.
func TestNamesThatNoObjectCanHave(t *testing.T) {
	h := newHouse(t, tune{})
	for target, of := range map[string]struct{ name, message string }{
		base + "/.":             {".", `Name parameter invalid: ".": may not be '.'`},
		base + "/..":            {"..", `Name parameter invalid: "..": may not be '..'`},
		base + "/a%2Fb":         {"a/b", `Name parameter invalid: "a/b": may not contain '/'`},
		base + "/a%25b":         {"a%b", `Name parameter invalid: "a%b": may not contain '%'`},
		base + "/%2E%2E":        {"..", `Name parameter invalid: "..": may not be '..'`},
		base + "/..%2Fx/status": {"../x", `Name parameter invalid: "../x": may not contain '/'`},
	} {
		body := fmt.Sprintf(`{"metadata":{"name":%q}}`, of.name)
		wantStatus(t, h.ask("GET", target, ""), http.StatusBadRequest, metav1.StatusReasonBadRequest, of.message)
		wantStatus(t, h.ask("PUT", target, body), http.StatusBadRequest, metav1.StatusReasonBadRequest, of.message)
		wantStatus(t, h.ask("PATCH", target, body, "Content-Type: application/merge-patch+json"), http.StatusBadRequest, metav1.StatusReasonBadRequest, of.message)
		wantStatus(t, h.ask("PUT", target, `{"metadata":{"name":"other"}}`), http.StatusBadRequest, metav1.StatusReasonBadRequest,
			fmt.Sprintf("the name of the object (other) does not match the name on the URL (%s)", of.name))
		if !strings.HasSuffix(target, "/status") {
			wantStatus(t, h.ask("DELETE", target, ""), http.StatusBadRequest, metav1.StatusReasonBadRequest, of.message)
			wantStatus(t, h.ask("POST", target, body), http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
				`create is not supported on resources of kind "widgets.example.com"`)
		}
	}
	wantStatus(t, h.ask("GET", "/apis/example.com/v1/namespaces/%2e%2e/widgets/a", ""), http.StatusBadRequest, metav1.StatusReasonBadRequest,
		`Namespace parameter invalid: "..": may not be '..'`)
}

// HEAD is refused for kinds with a Go type. testdata/wire/untyped/head.txt of package server has the other kinds.
func TestHead(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	for _, target := range []string{base + "/a", base + "/none", base, base + "?watch=true"} {
		if w := h.ask("HEAD", target, ""); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d %q", target, w.Code, w.Header())
		}
	}
}

func TestVerbs(t *testing.T) {
	h := newHouse(t, tune{})
	for sub, want := range map[string]string{
		"":       "create delete deletecollection get list patch update watch",
		"status": "get patch update",
		"scale":  "get patch update",
		"none":   "",
	} {
		if got := strings.Join(h.resource.Verbs(sub), " "); got != want {
			t.Errorf("%q: %s, want %s", sub, got, want)
		}
	}
	verbs := h.resource.Verbs("")
	verbs[0] = "x"
	if slices.Contains(h.resource.Verbs(""), "x") {
		t.Error("Verbs gives its own slice away")
	}
}

func TestWarningsOfTheResource(t *testing.T) {
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Deprecated = "example.com/v1 Widget is deprecated" }})
	w := h.ask("GET", base, "")
	if got := w.Header().Values("Warning"); len(got) != 1 || got[0] != `299 - "example.com/v1 Widget is deprecated"` {
		t.Errorf("Warning %q", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, change := range map[string]func(o *handlers.Options){
		"no scheme":         func(o *handlers.Options) { o.Scheme = nil },
		"no resource":       func(o *handlers.Options) { o.Resource.Resource = "" },
		"no kind":           func(o *handlers.Options) { o.Kind.Kind = "" },
		"shown fields":      func(o *handlers.Options) { o.Shown = []string{"spec.color"} },
		"another version":   func(o *handlers.Options) { o.Kind.Version = "v2" },
		"no storage":        func(o *handlers.Options) { o.Storage = nil },
		"no capability":     func(o *handlers.Options) { o.Storage = struct{}{} },
		"unknown kind":      func(o *handlers.Options) { o.Kind.Kind = "Gadget" },
		"empty subresource": func(o *handlers.Options) { o.Subresources["status"] = handlers.Subresource{} },
	} {
		var options handlers.Options
		newHouse(t, tune{handlers: func(o *handlers.Options) { options = *o }})
		change(&options)
		if _, err := handlers.New(options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// lazy is a storage that lists everything, whatever it is asked for.
type lazy struct{ registry.RecordLister }

// Fields that another version shows need a storage that looks at them: otherwise a selector would match everything.
func TestShownFieldsNeedAChooser(t *testing.T) {
	scheme := runtime.NewScheme()
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	if err := runtime.Register(scheme, gvk, runtime.KindOptions[*unstructured.Unstructured]{}); err != nil {
		t.Fatal(err)
	}
	_, err := handlers.New(handlers.Options{
		Scheme: scheme, Kind: gvk, Resource: gvk.GroupVersion().WithResource("gadgets"), Storage: lazy{}, Shown: []string{"spec.color"},
	})
	if err == nil || !strings.Contains(err.Error(), "handlers_test.lazy, is no registry.RecordChooser") {
		t.Error(err)
	}
}
