package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	asTable       = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	asTableBeta   = "Accept: application/json;as=Table;v=v1beta1;g=meta.k8s.io"
	asPartial     = "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	asPartialList = "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

const columns = `"columnDefinitions":[{"name":"Name","type":"string","format":"name","description":"` + nameDoc + `","priority":0},{"name":"Age","type":"date","format":"","description":"` + createdDoc + `","priority":0}]`

const (
	nameDoc    = `Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names`
	createdDoc = `CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata`
)

func partial(version, metadata string) string {
	return `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/` + version + `","metadata":` + metadata + `}`
}

// aged replaces the seconds in ages by 0s.
func aged(s string) string {
	for _, more := range []string{"1s", "2s", "3s", "4s", "5s"} {
		s = strings.ReplaceAll(s, `,"`+more+`"]`, `,"0s"]`)
	}
	return s
}

func TestTable(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a", "b")
	now := h.now(t)
	row := func(name, object string) string { return `{"cells":["` + name + `","0s"],"object":` + object + `}` }
	list := func(version string, rows ...string) string {
		return `{"kind":"Table","apiVersion":"meta.k8s.io/` + version + `","metadata":{"resourceVersion":"` + now + `"},` + columns + `,"rows":[` + strings.Join(rows, ",") + "]}\n"
	}
	a, b := h.metadata(t, "a"), h.metadata(t, "b")
	for _, c := range []struct{ target, accept, want string }{
		{base, asTable, list("v1", row("a", partial("v1", a)), row("b", partial("v1", b)))},
		{base, asTableBeta, list("v1beta1", row("a", partial("v1beta1", a)), row("b", partial("v1beta1", b)))},
		{base + "?includeObject=None", asTable, list("v1", row("a", "null"), row("b", "null"))},
		{base + "?includeObject=Object", asTable, list("v1", row("a", h.whole(t, "a")), row("b", h.whole(t, "b")))},
		{base + "?includeObject=Metadata", asTable, list("v1", row("a", partial("v1", a)), row("b", partial("v1", b)))},
		{base + "/b", asTable, list("v1", row("b", partial("v1", b)))},
		{"/apis/example.com/v1/namespaces/none/widgets", asTable, list("v1")},
	} {
		w := h.ask("GET", c.target, "", c.accept)
		if got := aged(w.Body.String()); w.Code != 200 || got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.target, got, c.want)
		}
	}
	w := h.ask("GET", base+"?limit=1", "", asTable)
	if got := w.Body.String(); !strings.Contains(got, `"metadata":{"resourceVersion":"`+now+`","continue":"`) || !strings.Contains(got, `,"remainingItemCount":1},"columnDefinitions"`) {
		t.Errorf("%s", got)
	}
	wantStatus(t, h.ask("GET", base+"?includeObject=Some", "", asTable), 400, bad,
		`Unable to convert to Table as requested: includeObject: Invalid value: "Some": must be 'Metadata', 'Object', 'None', or empty`)
	before := h.now(t)
	wantStatus(t, h.ask("POST", base+"?includeObject=Some", `{"metadata":{"name":"z"}}`, asTable), 400, bad,
		`Unable to convert to Table as requested: includeObject: Invalid value: "Some": must be 'Metadata', 'Object', 'None', or empty`)
	if h.now(t) != before {
		t.Error("created before the refusal")
	}
	w = h.ask("POST", base, `{"metadata":{"name":"c"}}`, asTable)
	if got := w.Body.String(); w.Code != 201 || !strings.HasPrefix(got, `{"kind":"Table"`) || !strings.Contains(got, `"cells":["c",`) {
		t.Errorf("%d %s", w.Code, got)
	}
	w = h.ask("GET", base+"/a", "", "Accept: application/yaml;as=Table;v=v1;g=meta.k8s.io")
	if got := w.Body.String(); w.Code != 200 || !strings.HasPrefix(got, "apiVersion: meta.k8s.io/v1\ncolumnDefinitions:\n") {
		t.Errorf("%d %s", w.Code, got)
	}
	w = h.ask("GET", base+"/none", "", asTable)
	wantStatus(t, w, 404, metav1.StatusReasonNotFound, `widgets.example.com "none" not found`)
}

// sizes prints the size of a widget, and fails for red widgets.
type sizes struct{}

func (sizes) Columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}, {Name: "Size", Type: "integer", Priority: 1}}
}

func (sizes) Row(_ context.Context, obj runtime.Object) ([]any, error) {
	w := obj.(*Widget)
	if w.Spec.Color == "red" {
		return nil, errors.New("red")
	}
	return []any{w.Name, w.Spec.Size}, nil
}

func TestTabler(t *testing.T) {
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Table = sizes{} }})
	h.make(t, "a")
	w := h.ask("GET", base+"?includeObject=None", "", asTable)
	wantBody(t, w, 200, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"`+h.now(t)+`"},"columnDefinitions":[{"name":"Name","type":"string","format":"name","description":"","priority":0},{"name":"Size","type":"integer","format":"","description":"","priority":1}],"rows":[{"cells":["a",1],"object":null}]}`+"\n")
	if w := h.ask("GET", base+"/a/status", "", asTable); !strings.Contains(w.Body.String(), `"cells":["a",1]`) {
		t.Errorf("status: %s", w.Body)
	}
	if w := h.ask("POST", base, `{"metadata":{"name":"b"},"spec":{"color":"red"}}`); w.Code != 201 {
		t.Fatal(w.Body)
	}
	// The second row fails, and the answer contains nothing but the error.
	if w := h.ask("GET", base, "", asTable); w.Code != http.StatusInternalServerError || decodeStatus(t, w.Body.Bytes()).Message != "red" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// growing prints a longer text at each call, like an age that grows to ten seconds.
type growing struct{ asked *atomic.Int64 }

func (growing) Columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{{Name: "Name", Type: "string"}}
}

func (g growing) Row(context.Context, runtime.Object) ([]any, error) {
	return []any{strings.Repeat("x", int(g.asked.Add(1)))}, nil
}

// The cells of a long table are computed twice, and may be different the second time.
func TestTableWhoseCellsGrow(t *testing.T) {
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Table = growing{new(atomic.Int64)} }})
	for i := range 600 {
		h.make(t, fmt.Sprintf("w%03d", i))
	}
	for _, accept := range []string{asTable, "Accept: application/yaml;as=Table;v=v1;g=meta.k8s.io"} {
		w := h.ask("GET", base, "", accept, "Accept-Encoding: gzip")
		if text := unzip(t, w.Body.Bytes()); w.Code != 200 || !strings.Contains(text, "w599") {
			t.Errorf("%s: %d, %d bytes", accept, w.Code, len(text))
		}
	}
}

func TestPartialObjectMetadata(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a", "b")
	wantBody(t, h.ask("GET", base+"/a", "", asPartial), 200, partial("v1", h.metadata(t, "a"))+"\n")
	wantBody(t, h.ask("GET", base+"/a", "", strings.Replace(asPartial, "=v1", "=v1beta1", 1)), 200, partial("v1beta1", h.metadata(t, "a"))+"\n")
	wantBody(t, h.ask("GET", base, "", asPartialList), 200, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"`+h.now(t)+`"},"items":[`+
		partial("v1", h.metadata(t, "a"))+","+partial("v1", h.metadata(t, "b"))+"]}\n")
	w := h.ask("PATCH", base+"/a", `{"spec":{"size":2}}`, mergeType, asPartial)
	wantBody(t, w, 200, partial("v1", h.metadata(t, "a"))+"\n")

	for _, c := range []struct{ method, target, accept, message string }{
		{"GET", base, asPartial, "you requested PartialObjectMetadata, but the requested object is a list (*v1.WidgetList)"},
		{"GET", base + "/a", asPartialList, "you requested PartialObjectMetadataList, but the requested object is not a list (*v1.Widget)"},
		{"POST", base, asPartialList, "you requested PartialObjectMetadataList, but the requested object is not a list (*v1.Widget)"},
		{"GET", base + "?watch=1", asPartialList, "you requested PartialObjectMetadataList, but the requested object is not a list (*v1.Widget)"},
		{"GET", base, "Accept: application/json;as=Table;v=v2;g=meta.k8s.io", "only the following media types are accepted: application/json, application/yaml"},
		{"GET", base, "Accept: application/json;as=Chair;v=v1;g=meta.k8s.io", "only the following media types are accepted: application/json, application/yaml"},
	} {
		before := h.now(t)
		wantStatus(t, h.ask(c.method, c.target, `{"metadata":{"name":"q"}}`, c.accept), 406, metav1.StatusReasonNotAcceptable, c.message)
		if h.now(t) != before {
			t.Errorf("%s %s changed something", c.method, c.target)
		}
	}
	w = h.ask("GET", base+"?watch=1", "", "Accept: application/yaml")
	if got := w.Body.String(); w.Code != 406 || !strings.Contains(got, "message: 'only the following media types are accepted: application/json;stream=watch'\n") {
		t.Errorf("watch in YAML: %d %s", w.Code, got)
	}
	if w := h.ask("GET", base, "", "Accept: text/html, */*;q=0.1"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
