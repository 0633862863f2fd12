package handlers_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCreateAnswersWithTheStoredBytes(t *testing.T) {
	h := newHouse(t, tune{})
	w := h.ask("POST", base, `{"metadata":{"name":"a","uid":"x","creationTimestamp":"2000-01-01T00:00:00Z","selfLink":"/x"},"spec":{"size":7,"color":"<red>"},"status":{"ready":true}}`)
	wantBody(t, w, http.StatusCreated, h.whole(t, "a")+"\n")
	got := w.Body.String()
	for _, want := range []string{`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","namespace":"default","uid":"`, `"generation":1`, `"spec":{"size":7,"color":"\u003cred\u003e","replicas":0},"status":{}}`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if strings.Contains(got, "2000") || strings.Contains(got, `"uid":"x"`) || strings.Contains(got, "selfLink") {
		t.Errorf("the client set what only the server sets: %s", got)
	}
}

func TestCreateDryRun(t *testing.T) {
	h := newHouse(t, tune{})
	w := h.ask("POST", base+"?dryRun=All", `{"metadata":{"name":"a"}}`)
	if w.Code != http.StatusCreated || strings.Contains(w.Body.String(), "resourceVersion") || !strings.Contains(w.Body.String(), `"uid":"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := h.ask("GET", base+"/a", ""); w.Code != http.StatusNotFound {
		t.Errorf("a dry run stored: %s", w.Body)
	}
}

func TestFieldValidation(t *testing.T) {
	h := newHouse(t, tune{})
	const body = `{"metadata":{"name":"%s"},"spec":{"size":1,"size":2,"foo":"x"}}`
	w := h.ask("POST", base+"?fieldValidation=Strict", fmt.Sprintf(body, "a"))
	wantStatus(t, w, 400, bad, `Widget in version "v1" cannot be handled as a Widget: strict decoding error: duplicate field "spec.size", unknown field "spec.foo"`)
	w = h.ask("POST", base, fmt.Sprintf(body, "a"))
	if got := w.Header().Values("Warning"); w.Code != 201 || len(got) != 2 || got[1] != `299 - "unknown field \"spec.foo\""` {
		t.Errorf("%d %q", w.Code, got)
	}
	w = h.ask("POST", base+"?fieldValidation=Ignore", fmt.Sprintf(body, "b"))
	if got := w.Header().Values("Warning"); w.Code != 201 || len(got) != 0 {
		t.Errorf("%d %q", w.Code, got)
	}
	w = h.ask("PUT", base+"/a?fieldValidation=Strict", fmt.Sprintf(body, "a"))
	wantStatus(t, w, 400, bad, `Widget in version "v1" cannot be handled as a Widget: strict decoding error: duplicate field "spec.size", unknown field "spec.foo"`)
}

func TestBodies(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	const yes = `{"metadata":{"name":"a"}}`
	for _, c := range []struct {
		name, method, target, body, head string
		code                             int
		reason                           metav1.StatusReason
		message                          string
	}{
		{"no JSON", "POST", base, `{"metadata":`, "", 400, bad, `*the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: unexpected end of JSON input ({"metadata":)`},
		{"empty", "POST", base, ``, "", 400, bad, `*the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)`},
		{"long", "POST", base, strings.Repeat("a", 100), "", 400, bad, `*the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: invalid character 'a' looking for beginning of value (` + strings.Repeat("61", 30) + ` ...)`},
		{"wrong type", "POST", base, `{"spec":{"size":"x"}}`, "", 400, bad, `*Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal string into Go struct field`},
		{"wrong kind", "POST", base, `{"kind":"Gadget"}`, "", 400, bad, `*Gadget in version "v1" cannot be handled as a Widget: `},
		{"wrong version", "POST", base, `{"apiVersion":"example.com/v2","kind":"Widget"}`, "", 400, bad, `Widget in version "v2" cannot be handled as a Widget: no kind "Widget" is registered for version "example.com/v2" in scheme "keelson"`},
		{"wrong version on PUT", "PUT", base + "/a", `{"apiVersion":"v2"}`, "", 400, bad, `Widget in version "v2" cannot be handled as a Widget: no kind "Widget" is registered for version "v2" in scheme "keelson"`},
		{"wrong namespace", "POST", base, `{"metadata":{"name":"a","namespace":"other"}}`, "", 400, bad, "the namespace of the provided object does not match the namespace sent on the request"},
		{"wrong namespace on PUT", "PUT", base + "/a", `{"metadata":{"name":"a","namespace":"other"}}`, "", 400, bad, "the namespace of the provided object does not match the namespace sent on the request"},
		{"wrong name", "PUT", base + "/a", `{"metadata":{"name":"b"}}`, "", 400, bad, "the name of the object (b) does not match the name on the URL (a)"},
		{"no name", "PUT", base + "/a", `{}`, "", 400, bad, "the name of the object (a based on URL) was undeterminable: name must be provided"},
		{"no name to create", "POST", base, `{}`, "", 422, invalid, `Widget.example.com "" is invalid: metadata.name: Required value: name or generateName is required`},
		{"media type", "POST", base, yes, "Content-Type: text/plain", 415, metav1.StatusReasonUnsupportedMediaType, "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"},
		{"protobuf", "PUT", base + "/a", yes, "Content-Type: application/vnd.kubernetes.protobuf", 415, metav1.StatusReasonUnsupportedMediaType, "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"},
		{"patch type", "PATCH", base + "/a", yes, "Content-Type: application/json", 415, metav1.StatusReasonUnsupportedMediaType, "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml"},
		{"exists", "POST", base, yes, "", 409, metav1.StatusReasonAlreadyExists, `widgets.example.com "a" already exists`},
		{"resourceVersion", "POST", base, `{"metadata":{"name":"z","resourceVersion":"5"}}`, "", 400, bad, "resourceVersion should not be set on objects to be created"},
		{"PUT nothing", "PUT", base + "/none", `{"metadata":{"name":"none"}}`, "", 404, metav1.StatusReasonNotFound, `widgets.example.com "none" not found`},
		{"stale PUT", "PUT", base + "/a", `{"metadata":{"name":"a","resourceVersion":"1"}}`, "", 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on widgets.example.com "a": the object has been modified; please apply your changes to the latest version and try again`},
		{"accept", "POST", base, yes, "Accept: text/html", 406, metav1.StatusReasonNotAcceptable, "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := h.now(t)
			w := h.ask(c.method, c.target, c.body, c.head)
			if strings.HasPrefix(c.message, "*") && w.Code == c.code {
				if got := decodeStatus(t, w.Body.Bytes()).Message; strings.HasPrefix(got, c.message[1:]) {
					c.message = got
				}
			}
			wantStatus(t, w, c.code, c.reason, c.message)
			if h.now(t) != before {
				t.Error("a refused request changed something")
			}
		})
	}
}

func TestBodyLimit(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	large := `{"metadata":{"name":"a"}}` + strings.Repeat(" ", 3<<20)
	for method, target := range map[string]string{"POST": base, "PUT": base + "/a", "PATCH": base + "/a", "DELETE": base + "/a"} {
		for _, chunked := range []bool{false, true} {
			r := httptest.NewRequest(method, target, strings.NewReader(large))
			if chunked {
				r.ContentLength = -1
			}
			if method == "PATCH" {
				r.Header.Set("Content-Type", "application/merge-patch+json")
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			wantStatus(t, w, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: limit is 3145728")
		}
	}
	exact := `{"metadata":{"name":"b"}}`
	if w := h.ask("POST", base, exact+strings.Repeat(" ", 3<<20-len(exact))); w.Code != http.StatusCreated {
		t.Errorf("a body of exactly the limit: %d %s", w.Code, w.Body)
	}
}

func TestBrokenBody(t *testing.T) {
	h := newHouse(t, tune{})
	r := httptest.NewRequest(http.MethodPost, base, io.MultiReader(strings.NewReader(`{"metadata"`), errReader{}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	wantStatus(t, w, 400, bad, "unable to read the request body: unexpected EOF")
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestUpdate(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	before := h.now(t)
	w := h.ask("PUT", base+"/a", h.whole(t, "a"))
	wantBody(t, w, 200, h.whole(t, "a")+"\n")
	if h.now(t) != before {
		t.Error("a PUT that changes nothing was written")
	}
	w = h.ask("PUT", base+"/a", `{"metadata":{"name":"a"},"spec":{"size":5}}`)
	wantBody(t, w, 200, h.whole(t, "a")+"\n")
	if !strings.Contains(w.Body.String(), `"generation":2`) {
		t.Errorf("generation: %s", w.Body)
	}
	w = h.ask("PUT", base+"/a/status", `{"metadata":{"name":"a"},"spec":{"size":9},"status":{"ready":true}}`)
	if got := w.Body.String(); w.Code != 200 || !strings.Contains(got, `"spec":{"size":5,"replicas":0},"status":{"ready":true}}`) {
		t.Errorf("%d %s", w.Code, got)
	}
	w = h.ask("PUT", base+"/a", `{"metadata":{"name":"a","uid":"other"}}`)
	if s := decodeStatus(t, w.Body.Bytes()); w.Code != 409 || !strings.Contains(s.Message, "UID in precondition: other") {
		t.Errorf("%d %s", w.Code, s.Message)
	}
}

func TestYAMLBothWays(t *testing.T) {
	h := newHouse(t, tune{})
	w := h.ask("POST", base, "metadata:\n  name: a\nspec:\n  size: 3\n", "Content-Type: application/yaml", "Accept: application/yaml")
	if got := w.Body.String(); w.Code != 201 || w.Header().Get("Content-Type") != "application/yaml" || !strings.HasPrefix(got, "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n") {
		t.Errorf("%d %s", w.Code, got)
	}
	w = h.ask("GET", base, "", "Accept: application/yaml")
	if got := w.Body.String(); !strings.HasPrefix(got, "apiVersion: example.com/v1\nitems:\n- metadata:\n") || !strings.Contains(got, "kind: WidgetList\n") {
		t.Errorf("%s", got)
	}
}

func TestPretty(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	for _, c := range []struct {
		query, head string
		pretty      bool
	}{
		{"", "", false}, {"?pretty=1", "", true}, {"?pretty=true", "", true}, {"", "User-Agent: curl/8.0", true},
		{"?pretty=0", "User-Agent: curl/8.0", false}, {"", "Accept: application/json;pretty=1", true}, {"?pretty=x", "", false},
	} {
		for _, path := range []string{base + "/a", base} {
			w := h.ask("GET", path+c.query, "", c.head)
			if got := strings.HasPrefix(w.Body.String(), "{\n  \"kind\": "); got != c.pretty || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s %s: %s", c.query, c.head, w.Body)
			}
		}
	}
}
