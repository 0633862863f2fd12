package crd_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const loose = "/apis/serving.example.com/v1/namespaces/default/loose"

func looseObject(name, rest string) string {
	return `{"apiVersion":"serving.example.com/v1","kind":"Loose","metadata":{"name":"` + name + `"}` + rest + `}`
}

// looseSteps creates objects with a definition without restrictions.
func looseSteps() []step {
	return []step{
		{method: "POST", path: loose, body: looseObject("a", `,"spec":{"color":"grey","size":20,"names":["long","a","a"],"parts":[{"name":"p","color":"grey"},{"name":"q"}],
			"inner":{"y":"1"},"free":"x","template":{"metadata":{"labels":{"a":"b"}}}}`)},
		{method: "PATCH", path: loose + "/a/status", contentType: merge, body: `{"status":{"phase":"Bad","note":"n","gone":1}}`},
		{method: "POST", path: loose, body: looseObject("b", `,"spec":{"color":"red","size":"text","needed":"yes"}`)},
		{method: "POST", path: loose, body: looseObject("c", ``)},
		{method: "POST", path: loose, body: looseObject("d", `,"spec":{"needed":"yes","parts":[{"name":"p","color":"grey"},{"name":"p"}]}`)},
	}
}

// strictSteps use these objects after the definition has become strict.
func strictSteps() []step {
	return []step{
		{method: "GET", path: loose},
		{method: "GET", path: loose, header: []string{"Accept", asTable}},
		{method: "GET", path: loose + "?fieldSelector=spec.color%3Dgrey", header: []string{"Accept", asTable}},
		{method: "GET", path: loose + "?fieldSelector=spec.size%3D1", header: []string{"Accept", asTable}}, // a default that did not exist when the objects were stored
		{method: "GET", path: loose + "?fieldSelector=spec.size%3D", header: []string{"Accept", asTable}},
		{method: "PATCH", path: loose + "/a", contentType: merge, body: `{"metadata":{"labels":{"x":"y"}}}`},
		{method: "PATCH", path: loose + "/a", contentType: merge, body: `{"spec":{"free":"y"}}`},
		{method: "PATCH", path: loose + "/a", contentType: merge, body: `{"spec":{"needed":"y"}}`},
		{method: "PATCH", path: loose + "/a", contentType: merge, body: `{"spec":{"color":"black"}}`},
		{method: "PATCH", path: loose + "/a", contentType: merge, body: `{"spec":{"size":21}}`},
		{method: "PATCH", path: loose + "/a", contentType: merge, body: `{"spec":{"inner":{"y":"2"}}}`},
		{method: "PATCH", path: loose + "/a", contentType: merge, body: `{"spec":{"names":["long","a"]}}`},
		{method: "PATCH", path: loose + "/a", contentType: merge, body: `{"spec":{"names":["b","b"]}}`},
		{method: "PATCH", path: loose + "/a", contentType: merge, body: `{"spec":{"parts":[{"name":"q"},{"name":"p","color":"grey"}]}}`},
		{method: "PATCH", path: loose + "/a", contentType: merge, body: `{"spec":{"parts":[{"name":"q","color":"grey"},{"name":"p","color":"grey"}]}}`},
		{method: "PATCH", path: loose + "/a", contentType: merge, body: `{"spec":{"template":{"metadata":{"labels":{"a b":"c"}}}}}`},
		{method: "PATCH", path: loose + "/a", contentType: merge, body: `{"spec":{"color":"green"}}`},
		{method: "PATCH", path: loose + "/a/status", contentType: merge, body: `{"status":{"note":"m"}}`},
		{method: "PATCH", path: loose + "/a/status", contentType: merge, body: `{"status":{"phase":"Worse"}}`},
		{method: "PATCH", path: loose + "/a/status", contentType: merge, body: `{"status":null}`},
		{method: "PATCH", path: loose + "/b", contentType: merge, body: `{"spec":{"color":"green"}}`},
		{method: "PATCH", path: loose + "/b", contentType: merge, body: `{"spec":{"size":2}}`},
		{method: "PATCH", path: loose + "/c", contentType: merge, body: `{"metadata":{"labels":{"x":"y"}}}`},
		{method: "PATCH", path: loose + "/c", contentType: merge, body: `{"spec":{"free":"x"}}`},
		{method: "PATCH", path: loose + "/c?fieldManager=one", contentType: apply, body: looseObject("c", `,"spec":{"needed":"x"}`)},
		{method: "PATCH", path: loose + "/d", contentType: merge, body: `{"spec":{"free":"x"}}`},
		{method: "PATCH", path: loose + "/d", contentType: merge, body: `{"spec":{"parts":[{"name":"q"},{"name":"q"}]}}`},
		{method: "PATCH", path: loose + "/d/status", contentType: merge, body: `{"status":{"phase":"Good"}}`},
		{method: "DELETE", path: loose},
	}
}

// hosted is a server that serves one definition at a time.
type hosted struct {
	*servertest.Server
	t    testing.TB
	host *server.Host
}

func newHosted(t testing.TB) *hosted {
	h := &hosted{t: t}
	h.Server = servertest.New(t, server.ExtensionFunc(func(host *server.Host) error {
		h.host = host
		return nil
	}))
	return h
}

// define serves d in place of the definition of the same name.
func (h *hosted) define(d *apiextensionsv1.CustomResourceDefinition) {
	h.t.Helper()
	group, err := groupOf(d, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	var gone []schema.GroupResource
	if _, err := h.host.Registry(resourceOf(d)); err == nil {
		gone = append(gone, resourceOf(d))
	}
	if err := h.host.Replace(gone, group); err != nil {
		h.t.Fatal(err)
	}
}

func resourceOf(d *apiextensionsv1.CustomResourceDefinition) schema.GroupResource {
	return schema.GroupResource{Group: d.Spec.Group, Resource: d.Status.AcceptedNames.Plural}
}

// Rules become stricter while objects are stored: values that an update does not change are tolerated. The answers are those of
// kube-apiserver.
func TestRatchetingAnswers(t *testing.T) {
	t.Parallel()
	h := newHosted(t)
	h.define(definitionFile(t, "before.yaml"))
	got := play(t, looseSteps(), h.Client(), h.URL)
	h.define(definitionFile(t, "after.yaml"))
	compareAnswers(t, "ratcheting.answers", got+play(t, strictSteps(), h.Client(), h.URL))
}

// An object that is read and written back is unchanged: defaults, pruning and other versions do not change it.
func TestUpdateOfItselfChangesNothing(t *testing.T) {
	t.Parallel()
	s := serveDefinition(t, definitionFile(t, "gadgets.yaml"))
	for _, one := range servingSteps() {
		if one.method != http.MethodDelete {
			one.do(t, s.Client(), s.URL)
		}
	}
	list := step{method: "GET", path: gadgets}.do(t, s.Client(), s.URL).object(t)
	items, _ := list["items"].([]any)
	if len(items) < 5 {
		t.Fatalf("only %d objects", len(items))
	}
	for _, item := range items {
		name := item.(map[string]any)["metadata"].(map[string]any)["name"].(string)
		paths := []string{gadgets + "/" + name, gadgets + "/" + name + "/status"}
		if name == "o" { // it has only fields that the older version has too
			paths = append(paths, older+"/"+name)
		}
		for _, path := range paths {
			before := step{method: "GET", path: path}.do(t, s.Client(), s.URL)
			after := step{method: "PUT", path: path, body: before.text}.do(t, s.Client(), s.URL)
			again := step{method: "GET", path: path}.do(t, s.Client(), s.URL)
			if after.code != http.StatusOK || after.text != before.text || again.text != before.text {
				t.Errorf("%s: before %s\nPUT %d %s\nafter %s", path, before.text, after.code, after.text, again.text)
			}
			patched := step{method: "PATCH", path: path, contentType: merge, body: `{}`}.do(t, s.Client(), s.URL)
			if patched.text != before.text {
				t.Errorf("%s: before %s\nPATCH %d %s", path, before.text, patched.code, patched.text)
			}
		}
	}
}

// watched starts a watch, calls act, and returns the first n events. A bookmark counts as an event.
func watched(t testing.TB, s *servertest.Server, path string, header []string, n int, act func()) []string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	act()
	var out []string
	for d := json.NewDecoder(resp.Body); len(out) < n; {
		var event struct {
			Type   string
			Object struct {
				Kind, APIVersion string
				Metadata         struct{ Name string }
				Spec             struct{ Color string }
				Rows             []struct{ Cells []any }
			}
		}
		if err := d.Decode(&event); err != nil {
			t.Fatalf("after %q: %v", out, err)
		}
		o := event.Object
		text := fmt.Sprint(event.Type, " ", o.APIVersion, " ", o.Kind, " ", o.Metadata.Name, " ", o.Spec.Color)
		for _, row := range o.Rows {
			text += fmt.Sprint(row.Cells)
		}
		out = append(out, text)
	}
	return out
}

// Watches select by fields, prune by the schema of their version, and make tables.
func TestWatches(t *testing.T) {
	t.Parallel()
	s := serveDefinition(t, definitionFile(t, "gadgets.yaml"))
	act := func() {
		for _, one := range []step{
			{method: "POST", path: gadgets, body: gadget("a", `,"spec":{"size":1,"color":"green","code":"ab"}`)},
			{method: "POST", path: gadgets, body: gadget("b", `,"spec":{"size":1}`)},
			{method: "PATCH", path: gadgets + "/a", contentType: merge, body: `{"spec":{"color":"blue"}}`},
			{method: "PATCH", path: gadgets + "/b", contentType: merge, body: `{"spec":{"color":"green"}}`},
			{method: "DELETE", path: gadgets + "/b"},
			{method: "DELETE", path: gadgets + "/a"},
		} {
			if a := one.do(t, s.Client(), s.URL); a.code/100 != 2 {
				t.Errorf("%v: %d %s", one, a.code, a.text)
			}
		}
	}
	for _, c := range []struct {
		path   string
		header []string
		want   []string
	}{
		{path: gadgets + "?watch=1&fieldSelector=spec.color%3Dgreen", want: []string{
			"ADDED serving.example.com/v1 Gadget a green", "DELETED serving.example.com/v1 Gadget a green",
			"ADDED serving.example.com/v1 Gadget b green", "DELETED serving.example.com/v1 Gadget b green",
		}},
		{path: older + "?watch=1", want: []string{
			"ADDED serving.example.com/v1beta1 Gadget a green", "ADDED serving.example.com/v1beta1 Gadget b red", "MODIFIED serving.example.com/v1beta1 Gadget a blue",
			"MODIFIED serving.example.com/v1beta1 Gadget b green", "DELETED serving.example.com/v1beta1 Gadget b green", "DELETED serving.example.com/v1beta1 Gadget a blue",
		}},
		{path: gadgets + "?watch=1&includeObject=None&fieldSelector=metadata.name%3Db", header: []string{"Accept", asTable}, want: []string{
			"ADDED meta.k8s.io/v1 Table  [b 1 red <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <invalid> <nil> <nil>]",
			"MODIFIED meta.k8s.io/v1 Table  [b 1 green <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <invalid> <nil> <nil>]",
			"DELETED meta.k8s.io/v1 Table  [b 1 green <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <invalid> <nil> <nil>]",
		}},
	} {
		got := watched(t, s, c.path, c.header, len(c.want), act)
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", c.path, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}
