package server_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/credentials"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The tests in the files wire_*_test.go use a server only from outside: they send requests, and compare the codes, headers and
// bytes of the answers with those of kube-apiserver.

type gearSpec struct {
	Size     int32             `json:"size,omitempty"`
	Color    string            `json:"color,omitempty"`
	Data     string            `json:"data,omitempty"`
	Replicas int32             `json:"replicas,omitempty"`
	Weight   float64           `json:"weight,omitempty"`
	Tags     []string          `json:"tags,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
}

type gearStatus struct {
	Ready    bool   `json:"ready,omitempty"`
	Replicas int32  `json:"replicas,omitempty"`
	Selector string `json:"selector,omitempty"`
}

// gear is served as Widget: namespaced, with status and scale. planet is cluster-scoped, ledger refuses a PUT without
// resourceVersion, and slot can be created by PUT.
type (
	gear   = runtime.Resource[gearSpec, gearStatus]
	planet = runtime.Resource[struct {
		Moons int32 `json:"moons,omitempty"`
	}, struct{}]
	ledger = runtime.Resource[struct {
		Sum int64 `json:"sum,omitempty"`
	}, struct{}]
	slot = runtime.Resource[struct {
		Holder string `json:"holder,omitempty"`
	}, struct{}]
)

func wireOptions() server.Options { return wireKinds(false) }

// uncached serves widgets from the storage, without a cache.
func uncached(o *server.Options) { o.Groups = wireKinds(true).Groups }

func wireKinds(noCache bool) server.Options {
	return server.Options{Groups: []server.Group{
		{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Widget", server.KindOptions[*gear]{
				ShortNames: []string{"wd"}, Categories: []string{"all"},
				Scale:   &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas", LabelSelector: ".status.selector"},
				NoCache: noCache,
			}),
			server.Kind("Planet", server.KindOptions[*planet]{ClusterScoped: true}),
			server.Kind("Ledger", server.KindOptions[*ledger]{Strategy: registry.Strategy[*ledger]{RequireResourceVersion: true}}),
			server.Kind("Slot", server.KindOptions[*slot]{Strategy: registry.Strategy[*slot]{CreateOnUpdate: true}}),
		}}}},
		{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("ConfigMap", server.KindOptions[*corev1.ConfigMap]{Strategy: registry.Strategy[*corev1.ConfigMap]{NoGeneration: true}}),
		}}}},
	}}
}

const (
	widgetList    = "/apis/example.com/v1/namespaces/default/widgets"
	allWidgets    = "/apis/example.com/v1/widgets"
	planetList    = "/apis/example.com/v1/planets"
	ledgerList    = "/apis/example.com/v1/namespaces/default/ledgers"
	slotList      = "/apis/example.com/v1/namespaces/default/slots"
	configMapList = "/api/v1/namespaces/default/configmaps"

	mergePatch = "application/merge-patch+json"
	jsonPatch  = "application/json-patch+json"
	patchTypes = jsonPatch + ", " + mergePatch + ", application/strategic-merge-patch+json, application/apply-patch+yaml"
)

// wire is a server that is used from outside.
type wire struct {
	*servertest.Server
	client *http.Client
}

func newWire(t *testing.T, change ...func(*server.Options)) *wire {
	t.Helper()
	opts := wireOptions()
	for _, f := range change {
		f(&opts)
	}
	srv := servertest.Start(t, opts)
	c := srv.Client()
	t.Cleanup(c.CloseIdleConnections)
	return &wire{srv, c}
}

// answer is a response, read whole.
type answer struct {
	code   int
	header http.Header
	body   string
}

// ask makes a request with the administrator's credentials.
func (w *wire) ask(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	return w.askAs(t, w.client, method, path, body, header...)
}

func (w *wire) askAs(t *testing.T, c *http.Client, method, path, body string, header ...string) answer {
	t.Helper()
	return roundTrip(t, c, method, w.URL+path, body, header...)
}

// roundTrip sends a request, with alternating names and values of its header, and returns the answer.
func roundTrip(t *testing.T, c *http.Client, method, url, body string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(out)}
}

// make creates an object, and returns the answer.
func (w *wire) make(t *testing.T, list, body string) metav1.PartialObjectMetadata {
	t.Helper()
	a := w.ask(t, "POST", list, body)
	a.want(t, 201)
	return a.meta(t)
}

// version is the resourceVersion of a list: the state of the store.
func (w *wire) version(t *testing.T) string {
	t.Helper()
	var list metav1.PartialObjectMetadataList
	a := w.ask(t, "GET", allWidgets+"?limit=1", "")
	a.want(t, 200)
	a.into(t, &list)
	return list.ResourceVersion
}

// unchanged returns a function that fails the test if the store has changed since.
func (w *wire) unchanged(t *testing.T) (check func()) {
	t.Helper()
	before := w.version(t)
	return func() {
		t.Helper()
		if after := w.version(t); after != before {
			t.Errorf("the store changed from %s to %s", before, after)
		}
	}
}

func (a answer) want(t *testing.T, code int) {
	t.Helper()
	if a.code != code {
		t.Fatalf("code %d, want %d; body: %.2000s", a.code, code, a.body)
	}
}

func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%v in %.2000s", err, a.body)
	}
}

func (a answer) meta(t *testing.T) (m metav1.PartialObjectMetadata) {
	t.Helper()
	a.into(t, &m)
	return m
}

// wantBody compares a body byte for byte, after replacing the parts that differ between runs.
func (a answer) wantBody(t *testing.T, want string) {
	t.Helper()
	if got := scrub(a.body); got != want {
		t.Errorf("body\n%s\nwant\n%s", got, want)
	}
}

var volatile = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`"uid":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"`), `"uid":"U"`},
	{regexp.MustCompile(`"resourceVersion":"[1-9][0-9]*"`), `"resourceVersion":"N"`},
	{regexp.MustCompile(`"(creation|deletion)Timestamp":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"`), `"${1}Timestamp":"T"`},
}

// scrub replaces well-formed uids, versions and times, and removes managedFields, which the golden files test.
func scrub(body string) string {
	for _, v := range volatile {
		body = v.find.ReplaceAllString(body, v.put)
	}
	for {
		before, rest, found := strings.Cut(body, `,"managedFields":[`)
		if !found {
			return body
		}
		depth := 1
		end := strings.IndexFunc(rest, func(r rune) bool {
			switch r {
			case '[':
				depth++
			case ']':
				depth--
			}
			return depth == 0
		})
		body = before + rest[end+1:]
	}
}

// refusal is the Status of an error as a client receives it.
type refusal struct {
	code    int
	reason  string
	message string
	details string // JSON; "": none
	header  string // "Retry-After: 1"; "": not checked
}

// wantRefusal compares an error byte for byte.
func (a answer) wantRefusal(t *testing.T, want refusal) {
	t.Helper()
	message, err := jsonText(want.message)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":` + message
	if want.reason != "" {
		body += `,"reason":"` + want.reason + `"`
	}
	if want.details != "" {
		body += `,"details":` + want.details
	}
	body += fmt.Sprintf(`,"code":%d}`, want.code) + "\n"
	if a.code != want.code {
		t.Errorf("code %d, want %d", a.code, want.code)
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	if a.body != body {
		t.Errorf("body\n%swant\n%s", a.body, body)
	}
	if name, value, ok := strings.Cut(want.header, ": "); ok && a.header.Get(name) != value {
		t.Errorf("header %s is %q, want %q", name, a.header.Get(name), value)
	}
	a.wantHouseHeaders(t)
}

// jsonText returns s as a JSON string as kube-apiserver writes it.
func jsonText(s string) (string, error) {
	b, err := json.Marshal(s)
	return string(b), err
}

// wantHouseHeaders checks the headers that every answer has.
func (a answer) wantHouseHeaders(t *testing.T) {
	t.Helper()
	if got := a.header.Get("Cache-Control"); got != "no-cache, private" {
		t.Errorf("Cache-Control %q", got)
	}
	if a.header.Get("Audit-Id") == "" {
		t.Error("no Audit-Id")
	}
}

// exchange is a request and its expected refusal.
type exchange struct {
	method, path, body string
	header             []string
	want               refusal
}

// runRefusals sends every request, and checks that none changes the store.
func (w *wire) runRefusals(t *testing.T, rows map[string]exchange) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		t.Run(name, func(t *testing.T) {
			row := rows[name]
			check := w.unchanged(t)
			w.ask(t, row.method, row.path, row.body, row.header...).wantRefusal(t, row.want)
			check()
		})
	}
}

const (
	noSuchWidget = `{"name":"none","group":"example.com","kind":"widgets"}`
	jsonOrYAML   = "application/json, application/yaml"
)

func TestWireErrorsAndNegotiation(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	w.runRefusals(t, map[string]exchange{
		"get what is not there": {"GET", widgetList + "/none", "", nil, refusal{404, "NotFound", `widgets.example.com "none" not found`, noSuchWidget, ""}},
		"get what is not there, core group": {"GET", configMapList + "/none", "", nil,
			refusal{404, "NotFound", `configmaps "none" not found`, `{"name":"none","kind":"configmaps"}`, ""}},
		"get what is not there, cluster-scoped": {"GET", planetList + "/none", "", nil,
			refusal{404, "NotFound", `planets.example.com "none" not found`, `{"name":"none","group":"example.com","kind":"planets"}`, ""}},
		"delete what is not there": {"DELETE", widgetList + "/none", "", nil, refusal{404, "NotFound", `widgets.example.com "none" not found`, noSuchWidget, ""}},
		"patch what is not there": {"PATCH", widgetList + "/none", "{}", []string{"Content-Type", mergePatch},
			refusal{404, "NotFound", `widgets.example.com "none" not found`, noSuchWidget, ""}},
		"put what is not there": {"PUT", widgetList + "/none", `{"metadata":{"name":"none"}}`, nil,
			refusal{404, "NotFound", `widgets.example.com "none" not found`, noSuchWidget, ""}},
		"unknown subresource": {"GET", widgetList + "/a/none", "", nil,
			refusal{404, "NotFound", "the server could not find the requested resource", "{}", ""}},
		"post to status": {"POST", widgetList + "/a/status", "{}", nil,
			refusal{405, "MethodNotAllowed", `create is not supported on resources of kind "widgets.example.com"`, `{"group":"example.com","kind":"widgets"}`, ""}},
		"delete across all namespaces": {"DELETE", allWidgets, "", nil,
			refusal{405, "MethodNotAllowed", `deletecollection is not supported on resources of kind "widgets.example.com"`, `{"group":"example.com","kind":"widgets"}`, ""}},
		"post across all namespaces": {"POST", allWidgets, `{"metadata":{"name":"b"}}`, nil,
			refusal{405, "MethodNotAllowed", `create is not supported on resources of kind "widgets.example.com"`, `{"group":"example.com","kind":"widgets"}`, ""}},
		"post of plain text": {"POST", widgetList, "hello", []string{"Content-Type", "text/plain"},
			refusal{415, "UnsupportedMediaType", "the body of the request was in an unknown format - accepted media types include: " + jsonOrYAML, "", ""}},
		"post of protobuf": {"POST", widgetList, "k8s\x00", []string{"Content-Type", "application/vnd.kubernetes.protobuf"},
			refusal{415, "UnsupportedMediaType", "the body of the request was in an unknown format - accepted media types include: " + jsonOrYAML, "", ""}},
		"put of CBOR": {"PUT", widgetList + "/a", "\xd9\xd9\xf7\xa0", []string{"Content-Type", "application/cbor"},
			refusal{415, "UnsupportedMediaType", "the body of the request was in an unknown format - accepted media types include: " + jsonOrYAML, "", ""}},
		"patch as json": {"PATCH", widgetList + "/a", "{}", []string{"Content-Type", "application/json"},
			refusal{415, "UnsupportedMediaType", "the body of the request was in an unknown format - accepted media types include: " + patchTypes, "", ""}},
		"apply patch of another format": {"PATCH", widgetList + "/a?fieldManager=m", "{}", []string{"Content-Type", "application/apply-patch+cbor"},
			refusal{415, "UnsupportedMediaType", "the body of the request was in an unknown format - accepted media types include: " + patchTypes, "", ""}},
		"patch without a type": {"PATCH", widgetList + "/a", "{}", nil,
			refusal{415, "UnsupportedMediaType", "the body of the request was in an unknown format - accepted media types include: " + patchTypes, "", ""}},
		"a timeout that is none": {"GET", widgetList + "?timeout=abc", "", nil,
			refusal{400, "BadRequest", `invalid timeout specified in the request URL - time: invalid duration "abc"`, "", ""}},
		"body over 3 MiB": {"POST", widgetList, `{"metadata":{"name":"b"},"spec":{"data":"` + strings.Repeat("x", 3<<20) + `"}}`, nil,
			refusal{413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", "", ""}},
		"body of 3 MiB and a byte": {"PUT", widgetList + "/a", strings.Repeat(" ", 3<<20+1), nil,
			refusal{413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", "", ""}},
		"patch over 3 MiB": {"PATCH", widgetList + "/a", strings.Repeat(" ", 3<<20) + "{}", []string{"Content-Type", mergePatch},
			refusal{413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", "", ""}},
		"delete options over 3 MiB": {"DELETE", widgetList + "/a", strings.Repeat(" ", 3<<20) + "{}", nil,
			refusal{413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", "", ""}},
	})
	t.Run("an encoded object over 1.5 MiB", func(t *testing.T) {
		defer w.unchanged(t)()
		a := w.ask(t, "POST", widgetList, `{"metadata":{"name":"big"},"spec":{"data":"`+strings.Repeat("x", 3<<19)+`"}}`)
		a.want(t, 413)
		if s := a.status(t); s.Reason != metav1.StatusReasonRequestEntityTooLarge {
			t.Errorf("%+v", s)
		}
		a = w.ask(t, "PATCH", widgetList+"/a", `{"spec":{"data":"`+strings.Repeat("x", 3<<19)+`"}}`, "Content-Type", mergePatch)
		a.want(t, 413)
	})
	t.Run("just under 1.5 MiB", func(t *testing.T) {
		w.ask(t, "POST", widgetList, `{"metadata":{"name":"large"},"spec":{"data":"`+strings.Repeat("x", 3<<19-4096)+`"}}`).want(t, 201)
		w.ask(t, "DELETE", widgetList+"/large", "").want(t, 200)
	})
	t.Run("forms that cannot be had", func(t *testing.T) {
		// The format of the Status cannot be negotiated either; it is indented.
		const form = "application/json;g=meta.k8s.io;v=v1;as="
		for _, c := range []struct {
			path, accept string
			want         metav1.Status
		}{
			{widgetList + "/a", form + "PartialObjectMetadataList", metav1.Status{Code: 406, Reason: "NotAcceptable",
				Message: "you requested PartialObjectMetadataList, but the requested object is not a list (*v1.Widget)"}},
			{widgetList, form + "PartialObjectMetadata", metav1.Status{Code: 406, Reason: "NotAcceptable",
				Message: "you requested PartialObjectMetadata, but the requested object is a list (*v1.WidgetList)"}},
			{widgetList + "?includeObject=All", form + "Table", metav1.Status{Code: 400, Reason: "BadRequest",
				Message: `Unable to convert to Table as requested: includeObject: Invalid value: "All": must be 'Metadata', 'Object', 'None', or empty`}},
		} {
			a := w.ask(t, "GET", c.path, "", "Accept", c.accept)
			a.want(t, int(c.want.Code))
			if got := a.status(t); got.Message != c.want.Message || got.Reason != c.want.Reason || !strings.HasPrefix(a.body, "{\n  ") {
				t.Errorf("%s: %s", c.accept, a.body)
			}
		}
	})
	t.Run("unknown group", func(t *testing.T) {
		for _, path := range []string{"/apis/unknown.io", "/apis/unknown.io/v1", "/apis/unknown.io/v1/foos", "/none", "/openapi", "/healthz/none", "/apis//v1/pods"} {
			a := w.ask(t, "GET", path, "")
			a.want(t, 404)
			if a.body != "404 page not found\n" || a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("%s: %q %q", path, a.header.Get("Content-Type"), a.body)
			}
			a.wantHouseHeaders(t)
		}
	})
	t.Run("known group", func(t *testing.T) {
		for _, path := range []string{
			"/apis/example.com/v2", "/apis/example.com/v1/nones", "/apis/example.com/v2/widgets", "/apis/example.com/v1/namespaces/x/nones/y",
			"/apis/example.com/v1/namespaces/x/widgets/y/none",
		} {
			a := w.ask(t, "GET", path, "")
			a.want(t, 404)
			if got := a.status(t); got.Message != "the server could not find the requested resource" || got.Details == nil || got.Details.Name != "" {
				t.Errorf("%s: %s", path, a.body)
			}
			a.wantHouseHeaders(t)
		}
	})
	t.Run("accept html", func(t *testing.T) {
		for _, path := range []string{widgetList + "/a", widgetList, widgetList + "/none"} {
			a := w.ask(t, "GET", path, "", "Accept", "text/html")
			a.want(t, 406)
			want := "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \"Failure\",\n" +
				"  \"message\": \"406: Not Acceptable\\n\\nAvailable representations: " + jsonOrYAML + ", application/vnd.kubernetes.protobuf"
			if path == widgetList {
				want += ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
			}
			want += "\",\n  \"reason\": \"NotAcceptable\",\n  \"details\": {},\n  \"code\": 406\n}"
			if a.body != want || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %q\n%s\nwant\n%s", path, a.header.Get("Content-Type"), a.body, want)
			}
		}
	})
	t.Run("accept protobuf or CBOR alone", func(t *testing.T) {
		for _, accept := range []string{"application/vnd.kubernetes.protobuf", "application/cbor", "application/*", "application/json;as=Nothing;g=meta.k8s.io;v=v1"} {
			a := w.ask(t, "GET", widgetList, "", "Accept", accept)
			a.want(t, 406)
		}
	})
	t.Run("accept with a fallback", func(t *testing.T) {
		for _, accept := range []string{
			"text/html, */*;q=0.1", "application/vnd.kubernetes.protobuf,application/json", "*/*", "",
			"application/json;as=Table;v=v9;g=meta.k8s.io,application/json", "application/json;charset=utf-8",
		} {
			a := w.ask(t, "GET", widgetList, "", "Accept", accept)
			a.want(t, 200)
			if got := a.header.Get("Content-Type"); got != "application/json" {
				t.Errorf("Accept %q: Content-Type %q", accept, got)
			}
			if !strings.HasPrefix(a.body, `{"kind":"WidgetList","apiVersion":"example.com/v1",`) {
				t.Errorf("Accept %q: %s", accept, a.body)
			}
		}
	})
	t.Run("yaml", func(t *testing.T) {
		a := w.ask(t, "GET", widgetList+"/a", "", "Accept", "application/yaml")
		a.want(t, 200)
		if got := a.header.Get("Content-Type"); got != "application/yaml" {
			t.Errorf("Content-Type %q", got)
		}
		if !strings.HasPrefix(a.body, "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  creationTimestamp: \"20") {
			t.Errorf("%s", a.body)
		}
		a = w.ask(t, "GET", widgetList+"/none", "", "Accept", "application/yaml")
		a.want(t, 404)
		if got := a.header.Get("Content-Type"); got != "application/yaml" || !strings.HasPrefix(a.body, "apiVersion: v1\ncode: 404\ndetails:\n  group: example.com\n") {
			t.Errorf("%q %s", got, a.body)
		}
	})
	t.Run("pretty", func(t *testing.T) {
		for _, c := range []struct {
			path, agent, accept string
			pretty              bool
		}{
			{"/a", "curl/8.0", "", true}, {"/a", "Wget/1", "", true}, {"/a", "Mozilla/5.0 (X11)", "", true}, {"/a?pretty=false", "curl/8.0", "", false},
			{"/a?pretty=true", "test", "", true}, {"/a", "test", "application/json;pretty=1", true}, {"/a", "test", "", false}, {"/a?pretty=0", "test", "", false},
			{"/none?pretty=1", "test", "", true}, {"/none", "curl/8", "", true}, {"/none", "test", "", false}, {"/a?pretty=", "curl/8.0", "", true},
		} {
			a := w.ask(t, "GET", widgetList+c.path, "", "User-Agent", c.agent, "Accept", c.accept)
			if got := strings.HasPrefix(a.body, "{\n  \"kind\": "); got != c.pretty {
				t.Errorf("%+v: %s", c, a.body)
			}
			if c.pretty == strings.HasSuffix(a.body, "\n") {
				t.Errorf("%+v: the end is %q", c, a.body[len(a.body)-3:])
			}
		}
	})
	t.Run("audit id", func(t *testing.T) {
		a := w.ask(t, "GET", widgetList, "", "Audit-ID", "abc-1")
		if got := a.header.Get("Audit-Id"); got != "abc-1" {
			t.Errorf("Audit-Id %q", got)
		}
		if one, two := w.ask(t, "GET", "/version", ""), w.ask(t, "GET", "/version", ""); one.header.Get("Audit-Id") == two.header.Get("Audit-Id") {
			t.Error("two requests have one Audit-Id")
		}
	})
	t.Run("export is gone", func(t *testing.T) {
		w.ask(t, "GET", widgetList+"/a?export=true", "").want(t, 400)
		w.ask(t, "GET", widgetList+"/a?export=false", "").want(t, 200)
	})
	t.Run("watch on an item is a get", func(t *testing.T) {
		a := w.ask(t, "GET", widgetList+"/a?watch=true", "")
		a.want(t, 200)
		if a.meta(t).Name != "a" {
			t.Errorf("%s", a.body)
		}
	})
}

func (a answer) status(t *testing.T) (s metav1.Status) {
	t.Helper()
	a.into(t, &s)
	if s.Kind != "Status" || s.APIVersion != "v1" {
		t.Fatalf("no Status: %s", a.body)
	}
	return s
}

func TestWireWhoIsAsking(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	nobody := w.Anonymous()
	t.Cleanup(nobody.CloseIdleConnections)
	t.Run("without credentials", func(t *testing.T) {
		a := w.askAs(t, nobody, "GET", widgetList+"/a", "")
		a.wantRefusal(t, refusal{403, "Forbidden",
			`widgets.example.com "a" is forbidden: User "system:anonymous" cannot get resource "widgets" in API group "example.com" in the namespace "default"`,
			`{"name":"a","group":"example.com","kind":"widgets"}`, "X-Content-Type-Options: nosniff"})
		a = w.askAs(t, nobody, "POST", planetList, "{}")
		a.wantRefusal(t, refusal{403, "Forbidden",
			`planets.example.com is forbidden: User "system:anonymous" cannot create resource "planets" in API group "example.com" at the cluster scope`,
			`{"group":"example.com","kind":"planets"}`, "X-Content-Type-Options: nosniff"})
		a = w.askAs(t, nobody, "GET", "/apis", "")
		a.wantRefusal(t, refusal{403, "Forbidden", `forbidden: User "system:anonymous" cannot get path "/apis"`, `{}`, "X-Content-Type-Options: nosniff"})
		a = w.askAs(t, nobody, "PATCH", widgetList+"/a/status", "{}")
		a.wantRefusal(t, refusal{403, "Forbidden",
			`widgets.example.com "a" is forbidden: User "system:anonymous" cannot patch resource "widgets/status" in API group "example.com" in the namespace "default"`,
			`{"name":"a","group":"example.com","kind":"widgets"}`, ""})
	})
	t.Run("markup in a path is escaped", func(t *testing.T) {
		a := w.askAs(t, nobody, "GET", "/a%3Cscript%3E%26", "")
		a.want(t, 403)
		if got := a.status(t).Message; got != `forbidden: User "system:anonymous" cannot get path "/a&lt;script&gt;&amp;"` {
			t.Errorf("%s", got)
		}
	})
	t.Run("a token of nobody", func(t *testing.T) {
		for _, path := range []string{widgetList, "/version", "/healthz", "/nothing"} {
			for _, value := range []string{"Bearer nonsense", "bearer x.y.z"} {
				w.askAs(t, nobody, "GET", path, "", "Authorization", value).wantRefusal(t, refusal{401, "Unauthorized", "Unauthorized", "", ""})
			}
		}
	})
	t.Run("for people", func(t *testing.T) {
		a := w.askAs(t, nobody, "GET", "/version", "", "Authorization", "Bearer nonsense", "User-Agent", "curl/8")
		a.want(t, 401)
		if !strings.HasPrefix(a.body, "{\n  \"kind\": \"Status\"") {
			t.Errorf("%s", a.body)
		}
	})
	t.Run("a certificate of another authority", func(t *testing.T) {
		otherAuthority, err := credentials.Open(credentials.Options{Host: "localhost"})
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(otherAuthority.ClientCertPEM, otherAuthority.ClientKeyPEM)
		if err != nil {
			t.Fatal(err)
		}
		transport := w.Transport()
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
		defer transport.CloseIdleConnections()
		for _, path := range []string{widgetList, "/version"} {
			w.askAs(t, &http.Client{Transport: transport}, "GET", path, "").wantRefusal(t, refusal{401, "Unauthorized", "Unauthorized", "", ""})
		}
	})
	t.Run("the administrator's certificate", func(t *testing.T) {
		own := w.Credentials()
		pair, err := tls.X509KeyPair(own.ClientCertPEM, own.ClientKeyPEM)
		if err != nil {
			t.Fatal(err)
		}
		transport := w.Transport()
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
		defer transport.CloseIdleConnections()
		w.askAs(t, &http.Client{Transport: transport}, "GET", widgetList, "").want(t, 200)
	})
	t.Run("another scheme is no credential", func(t *testing.T) {
		w.askAs(t, nobody, "GET", "/version", "", "Authorization", "Basic YTpi").want(t, 200)
		w.askAs(t, nobody, "GET", widgetList, "", "Authorization", "Basic YTpi").want(t, 403)
	})
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
