package crd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/runtime"
	celrules "github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd/internal/serving"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// definitionFile reads a definition, whose names are accepted as they are.
func definitionFile(t testing.TB, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return definitionText(t, string(text))
}

// definitionText is definitionFile for text, with the defaults for names that are not there.
func definitionText(t testing.TB, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(text), d); err != nil {
		t.Fatal(err)
	}
	names := &d.Spec.Names
	if names.Singular == "" {
		names.Singular = strings.ToLower(names.Kind)
	}
	if names.ListKind == "" {
		names.ListKind = names.Kind + "List"
	}
	d.Status.AcceptedNames = *names.DeepCopy()
	return d
}

// groupOf returns the group of a definition whose objects convert converts; with nil, versions differ in their apiVersion.
func groupOf(d *apiextensionsv1.CustomResourceDefinition, convert runtime.ConvertUntyped) (server.Group, error) {
	compiler, err := celrules.NewCompiler()
	if err != nil {
		return server.Group{}, err
	}
	kind := schema.GroupKind{Group: d.Spec.Group, Kind: d.Status.AcceptedNames.Kind}
	groups, err := serving.New(compiler, prometheus.NewRegistry(), serving.Options{Conversions: map[schema.GroupKind]runtime.ConvertUntyped{kind: convert}})
	if err != nil {
		return server.Group{}, err
	}
	return groups.Of(d)
}

// serveDefinition serves what a definition defines, and nothing else.
func serveDefinition(t testing.TB, d *apiextensionsv1.CustomResourceDefinition) *servertest.Server {
	t.Helper()
	group, err := groupOf(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	return servertest.New(t, group)
}

// step is a request of a test.
type step struct {
	method, path string
	contentType  string // "" is JSON where there is a body
	body         string
	header       []string // names and values
	differs      string   // reason why the answer differs from kube-apiserver's; "" if it does not
}

// answer is what came back.
type answer struct {
	code     int
	warnings []string
	text     string
}

func (a answer) object(t testing.TB) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(a.text), &out); err != nil {
		t.Fatalf("%d %s: %v", a.code, a.text, err)
	}
	return out
}

// do makes the request of a step.
func (s step) do(t testing.TB, client *http.Client, url string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), s.method, url+s.path, strings.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	if s.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.contentType != "" {
		req.Header.Set("Content-Type", s.contentType)
	}
	req.Header.Set("User-Agent", "test/1")
	header = append(header, s.header...)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header.Values("Warning"), string(text)}
}

// show writes an answer without what differs from run to run.
func (a answer) show() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d\n", a.code)
	for _, w := range a.warnings {
		fmt.Fprintf(&out, "Warning: %s\n", w)
	}
	var object any
	if json.Unmarshal([]byte(a.text), &object) != nil {
		if !utf8.ValidString(a.text) {
			a.text = strconv.Quote(a.text)
		}
		return out.String() + volatile.ReplaceAllString(a.text, "…") + "\n"
	}
	managers(object, true)
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(steady(object)); err != nil {
		return err.Error()
	}
	return out.String() + text.String()
}

// steady replaces parts that differ between runs.
func steady(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			switch text, isText := member.(string); {
			case name == "uid" || name == "resourceVersion" && member != "" || name == "time" || name == "creationTimestamp" && isText || name == "continue":
				v[name] = "…"
			case isText:
				v[name] = volatile.ReplaceAllString(text, "…")
			default:
				v[name] = steady(member)
			}
		}
	case []any:
		for i, element := range v {
			if text, ok := element.(string); ok && ages.MatchString(text) {
				v[i] = "…"
				continue
			}
			v[i] = steady(element)
		}
	}
	return v
}

var (
	volatile = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|(resourceVersion\W+)"\d+`)
	ages     = regexp.MustCompile(`^\d+[ydhms](\d+[dhms])?$`)
)

const noReason = "it is a 500 without a reason there, for what is the client's mistake"

const (
	gadgets = "/apis/serving.example.com/v1/namespaces/default/gadgets"
	older   = "/apis/serving.example.com/v1beta1/namespaces/default/gadgets"

	merge = "application/merge-patch+json"
	apply = "application/apply-patch+yaml"

	asTable = "application/json;as=Table;g=meta.k8s.io;v=v1"
	asMeta  = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

func gadget(name, rest string) string {
	return `{"apiVersion":"serving.example.com/v1","kind":"Gadget","metadata":{"name":"` + name + `"}` + rest + `}`
}

func olderGadget(name, rest string) string {
	return strings.Replace(gadget(name, rest), "/v1", "/v1beta1", 1)
}

// servingSteps are requests for gadgets. The answers of kube-apiserver 1.37 are in testdata/gadgets.answers, except for those
// that differ.
func servingSteps() []step {
	return []step{
		// Creating: defaults, pruning, reports.
		{method: "POST", path: gadgets, body: gadget("a", `,"unknown":1,"spec":{"size":3,"more":true,"names":["x","y"],"parts":[{"name":"p","less":1},{"name":"q","count":5}],"ratio":2.5,
			"extra":{"any":{"b":1},"known":{"a":1,"b":2}},"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"t","unknown":1},"spec":{"x":1}},"labels":{"a":"b"},"note":null,"nick":null,"port":"http"},
			"status":{"phase":"Good"}`)},
		{method: "POST", path: gadgets + "?fieldValidation=Strict", body: gadget("b", `,"unknown":1,"spec":{"size":3,"more":true,"parts":[{"name":"p","less":1}],"extra":{"known":{"b":2}},"template":{"apiVersion":"v1","kind":"Pod","metadata":{"unknown":1}},"size":4}`)},
		{method: "POST", path: gadgets + "?fieldValidation=Ignore", body: gadget("b", `,"unknown":1,"spec":{"size":4,"on":true,"port":8080,"color":"green","when":"2020-01-01T00:00:00Z"}`)},
		{method: "POST", path: gadgets + "?fieldValidation=Nonsense", body: gadget("c", ``)},
		{method: "POST", path: gadgets + "?dryRun=All", body: gadget("dry", `,"spec":{"size":1}`)},
		// Invalid objects and their errors.
		{method: "POST", path: gadgets, body: gadget("c", ``)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":"text"`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":null`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":"3"}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":11}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"color":"grey"}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"ratio":0}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"code":"AB"}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"when":"yesterday"}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"port":true}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"either":{}}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"names":["a","a"]}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"names":["a","b","c","d"]}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"parts":[{"name":"a"},{"name":"a"}]}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"parts":[{}]}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"labels":{"a":"long"}}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"template":{"metadata":{"name":"A_"}}}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"template":{"apiVersion":"v1","kind":"Pod","metadata":{"labels":7}}}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":1,"replicas":-1}`)},
		{method: "POST", path: gadgets, body: gadget("c", `,"spec":{"size":11,"replicas":3000000000,"names":["a","a"]}`)},
		{method: "POST", path: gadgets, body: gadget("C_", `,"spec":{"size":11}`)},
		{method: "POST", path: gadgets, body: strings.Replace(gadget("c", `,"spec":{"size":1}`), `"Gadget"`, `"Widget"`, 1)},
		{method: "POST", path: gadgets, body: olderGadget("c", `,"spec":{"size":1}`)},
		{method: "POST", path: gadgets, body: strings.Replace(gadget("c", `,"spec":{"size":1}`), `"name"`, `"labels":{"a":1},"name"`, 1)},
		{method: "POST", path: gadgets, body: `{"apiVersion":"serving.example.com/v1","kind":"Gadget","metadata":7}`},
		{method: "POST", path: gadgets, body: `{"apiVersion":"serving.example.com/v1","kind":"Gadget","spec":{"size":1}}`},
		{method: "POST", path: gadgets, body: `[]`},
		{method: "POST", path: gadgets, body: gadget("a", `,"spec":{"size":1}`)},
		{method: "POST", path: gadgets, contentType: "application/yaml", body: "apiVersion: serving.example.com/v1\nkind: Gadget\nmetadata: {name: y}\nspec: {size: 1, note: ~}\n"},
		{method: "POST", path: gadgets, body: strings.Replace(gadget("f", `,"spec":{"size":1}`), `"name"`, `"finalizers":["plain","with.dot","example.com/good","foregroundDeletion"],"name"`, 1)},
		{method: "PATCH", path: gadgets + "/f", contentType: merge, body: `{"metadata":{"finalizers":["plain","other"]}}`},
		{method: "PATCH", path: gadgets + "/f", contentType: merge, body: `{"metadata":{"finalizers":["bad finalizer"]}}`},
		{method: "PATCH", path: gadgets + "/f", contentType: merge, body: `{"metadata":{"finalizers":null}}`},
		// Reading.
		{method: "GET", path: gadgets + "/a"},
		{method: "GET", path: gadgets + "/none"},
		{method: "GET", path: gadgets},
		{method: "GET", path: gadgets + "/a", header: []string{"Accept", asTable}},
		{method: "GET", path: gadgets + "?includeObject=None", header: []string{"Accept", asTable}},
		{method: "GET", path: gadgets + "/a", header: []string{"Accept", "application/yaml"}},
		{method: "GET", path: gadgets + "?limit=1", header: []string{"Accept", asMeta}},
		{method: "GET", path: gadgets + "/a", header: []string{"Accept", "application/vnd.kubernetes.protobuf"}},
		// Field selectors.
		{method: "GET", path: gadgets + "?includeObject=None&fieldSelector=spec.color%3Dgreen", header: []string{"Accept", asTable}},
		{method: "GET", path: gadgets + "?includeObject=None&fieldSelector=spec.size%3D3", header: []string{"Accept", asTable}},
		{method: "GET", path: gadgets + "?includeObject=None&fieldSelector=spec.on%3Dtrue", header: []string{"Accept", asTable}},
		{method: "GET", path: gadgets + "?includeObject=None&fieldSelector=spec.on%3D", header: []string{"Accept", asTable}},
		{method: "GET", path: gadgets + "?includeObject=None&fieldSelector=spec.color!%3Dgreen,metadata.name%3Da", header: []string{"Accept", asTable}},
		{method: "GET", path: gadgets + "?fieldSelector=spec.note%3Dx"},
		{method: "GET", path: older + "?fieldSelector=spec.color%3Dgreen"},
		// Updates: generation, status, errors.
		{method: "PATCH", path: gadgets + "/a", contentType: merge, body: `{"spec":{"size":4},"status":{"phase":"Bad"}}`},
		{method: "PATCH", path: gadgets + "/a", contentType: merge, body: `{"metadata":{"labels":{"x":"y"}}}`},
		{method: "PATCH", path: gadgets + "/a", contentType: merge, body: `{"spec":{"color":null,"nick":null,"unknown":2}}`},
		{method: "PATCH", path: gadgets + "/a?fieldValidation=Strict", contentType: merge, body: `{"spec":{"unknown":2}}`},
		{method: "PATCH", path: gadgets + "/a", contentType: merge, body: `{"spec":{"size":20}}`},
		{method: "PATCH", path: gadgets + "/a", contentType: merge, body: `{"spec":null}`},
		{method: "PATCH", path: gadgets + "/a", contentType: "application/json-patch+json", body: `[{"op":"replace","path":"/spec/size","value":5},{"op":"test","path":"/spec/color","value":"red"}]`},
		{method: "PATCH", path: gadgets + "/a", contentType: "application/json-patch+json", body: `[{"op":"remove","path":"/spec/missing"}]`},
		{method: "PATCH", path: gadgets + "/a", contentType: "application/strategic-merge-patch+json", body: `{"spec":{"size":5}}`},
		{method: "PUT", path: gadgets + "/a", body: gadget("a", `,"spec":{"size":6}`)},
		{method: "PUT", path: gadgets + "/b", body: gadget("a", `,"spec":{"size":6}`)},
		{method: "PUT", path: gadgets + "/none", body: gadget("none", `,"spec":{"size":6}`)},
		// Status.
		{method: "PATCH", path: gadgets + "/a/status", contentType: merge, body: `{"spec":{"size":9},"metadata":{"labels":{"z":"z"}},"status":{"phase":"Good","replicas":2,"selector":"a=b","unknown":1,"conditions":[{"type":"Ready","status":"True"}]}}`},
		{method: "PATCH", path: gadgets + "/a/status", contentType: merge, body: `{"status":{"phase":"Ugly"}}`},
		{method: "PATCH", path: gadgets + "/a/status", contentType: merge, body: `{"status":{"conditions":[{"type":"A"},{"type":"A"}]}}`},
		{method: "PATCH", path: gadgets + "/a/status", contentType: merge, body: `{"status":{"replicas":-1,"selector":5}}`},
		{method: "PATCH", path: gadgets + "/a/status", contentType: merge, body: `{"status":"text"}`},
		{method: "GET", path: gadgets + "/a/status"},
		{method: "GET", path: gadgets + "?includeObject=None", header: []string{"Accept", asTable}},
		// Scale.
		{method: "GET", path: gadgets + "/a/scale"},
		{method: "PUT", path: gadgets + "/a/scale", body: `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","namespace":"default"},"spec":{"replicas":4}}`},
		{method: "GET", path: gadgets + "/a/scale"},
		{method: "GET", path: gadgets + "/a/scale", header: []string{"Accept", asTable}},
		{method: "PATCH", path: gadgets + "/a/scale", contentType: merge, body: `{"spec":{"replicas":-4}}`},
		// Server-side apply.
		{method: "PATCH", path: gadgets + "/s?fieldManager=one", contentType: apply, body: gadget("s", `,"spec":{"size":1,"names":["a"],"parts":[{"name":"p"}],"labels":{"a":"x"}}`)},
		{method: "PATCH", path: gadgets + "/s?fieldManager=two", contentType: apply, body: gadget("s", `,"spec":{"size":1,"names":["b"],"parts":[{"name":"q","count":7}],"labels":{"b":"x"}}`)},
		{method: "PATCH", path: gadgets + "/s?fieldManager=two", contentType: apply, body: gadget("s", `,"spec":{"size":2,"parts":[{"name":"p","count":2}]}`)},
		{method: "PATCH", path: gadgets + "/s?fieldManager=two&force=true", contentType: apply, body: gadget("s", `,"spec":{"size":2,"parts":[{"name":"p","count":2}]}`)},
		{method: "PATCH", path: gadgets + "/s?fieldManager=two", contentType: apply, body: gadget("s", `,"spec":{"size":2,"unknown":1}`), differs: noReason},
		{method: "PATCH", path: gadgets + "/s?fieldManager=two&fieldValidation=Strict", contentType: apply, body: gadget("s", `,"spec":{"size":2,"unknown":1}`), differs: noReason},
		{method: "PATCH", path: gadgets + "/s?fieldManager=two", contentType: apply, body: gadget("s", `,"spec":{"size":"2"}`), differs: noReason},
		{method: "PATCH", path: gadgets + "/s/status?fieldManager=three", contentType: apply, body: gadget("s", `,"status":{"phase":"Good","conditions":[{"type":"A"}]}`)},
		// Another version: it prunes fields that it does not have, validates by its own schema, and warns.
		{method: "GET", path: older + "/a"},
		{method: "GET", path: older},
		{method: "GET", path: older + "/a", header: []string{"Accept", asTable}},
		{method: "GET", path: older + "/a/status"},
		{method: "GET", path: older + "/a/scale"},
		{method: "POST", path: older, body: olderGadget("o", `,"spec":{"size":100,"color":"pink","old":"x"},"status":{"phase":"Any"}`)},
		{method: "POST", path: older, body: olderGadget("p", `,"spec":{"size":1,"color":"purple"}`)},
		{method: "GET", path: gadgets + "/o"},
		{method: "PATCH", path: gadgets + "/o", contentType: merge, body: `{"metadata":{"labels":{"x":"y"}}}`},
		{method: "PATCH", path: gadgets + "/o", contentType: merge, body: `{"spec":{"color":"red"}}`},
		{method: "PATCH", path: gadgets + "/o", contentType: merge, body: `{"spec":{"size":101}}`},
		{method: "PATCH", path: older + "/o", contentType: merge, body: `{"spec":{"size":102},"status":{"phase":"Other"}}`},
		{method: "PATCH", path: older + "/a", contentType: merge, body: `{"spec":{"size":7}}`},
		{method: "GET", path: gadgets + "/a"},
		{method: "PATCH", path: gadgets + "/o/status", contentType: merge, body: `{"status":{"replicas":1}}`},
		// Versions and resources that are not served.
		{method: "GET", path: strings.Replace(gadgets, "/v1/", "/v1alpha1/", 1)},
		{method: "GET", path: gadgets + "/a/nothing"},
		{method: "POST", path: gadgets + "/a/status", body: gadget("a", ``)},
		// Deleting.
		{method: "DELETE", path: gadgets + "/a"},
		{method: "DELETE", path: gadgets + "?fieldSelector=spec.color%3Dgreen"},
		{method: "DELETE", path: older + "/o"},
		{method: "GET", path: gadgets + "?includeObject=None", header: []string{"Accept", asTable}},
	}
}

const plains = "/apis/serving.example.com/v1/plains"

func plain(name, rest string) string {
	return `{"apiVersion":"serving.example.com/v1","kind":"Plain","metadata":{"name":"` + name + `"}` + rest + `}`
}

// plainSteps are servingSteps for a kind with a minimal definition.
func plainSteps() []step {
	return []step{
		{method: "POST", path: plains, body: plain("a", `,"spec":{"any":[1,{"b":null}]},"status":{"x":1},"other":2.0,"null":null`)},
		{method: "GET", path: plains + "/a"},
		{method: "PUT", path: plains + "/a", body: plain("a", `,"spec":{"any":[1]}`)},
		{method: "PATCH", path: plains + "/a", contentType: merge, body: `{"status":{"x":2}}`},
		{method: "PATCH", path: plains + "/a", contentType: merge, body: `{"metadata":{"annotations":{"x":"2"}}}`},
		{method: "GET", path: plains + "/a/status"},
		{method: "GET", path: plains + "/a/scale"},
		{method: "GET", path: plains, header: []string{"Accept", asTable}},
		{method: "GET", path: plains + "?fieldSelector=metadata.name%3Da", header: []string{"Accept", asTable}},
		{method: "GET", path: plains + "?fieldSelector=metadata.namespace%3Da"},
		{method: "GET", path: plains + "?fieldSelector=spec.any%3Da"},
		{method: "PATCH", path: plains + "/b?fieldManager=one", contentType: apply, body: plain("b", `,"spec":{"list":[1,2],"map":{"a":1}},"status":{"x":1}`)},
		{method: "PATCH", path: plains + "/b?fieldManager=two", contentType: apply, body: plain("b", `,"spec":{"map":{"b":1}}`)},
		{method: "PATCH", path: plains + "/b?fieldManager=two", contentType: apply, body: plain("b", `,"spec":{"list":[1]}`)},
		{method: "POST", path: plains, body: plain("c", `,"spec":{"size":-1}`)},
		{method: "POST", path: "/apis/serving.example.com/v1/namespaces/default/plains", body: plain("c", ``)},
		{method: "DELETE", path: plains},
	}
}

// play makes the requests of steps one after the other, and writes down the answers.
func play(t testing.TB, steps []step, client *http.Client, url string, header ...string) string {
	var out strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&out, "--- %d %s %s", i, s.method, s.path)
		if s.body != "" {
			fmt.Fprintf(&out, " %q", s.body)
		}
		out.WriteString("\n" + s.do(t, client, url, header...).show())
	}
	return out.String()
}

// The answers of kube-apiserver are in a file. They must be equal byte for byte, except for parts that differ between runs.
func TestGadgetsAnswers(t *testing.T) {
	t.Parallel()
	s := serveDefinition(t, definitionFile(t, "gadgets.yaml"))
	compareAnswers(t, "gadgets.answers", play(t, servingSteps(), s.Client(), s.URL))
}

// A minimal definition: any field is kept, status is an ordinary field, and the kind is cluster-scoped.
func TestPlainAnswers(t *testing.T) {
	t.Parallel()
	s := serveDefinition(t, definitionFile(t, "plains.yaml"))
	compareAnswers(t, "plains.answers", play(t, plainSteps(), s.Client(), s.URL))
}

// compareAnswers compares what was played with the file of answers.
func compareAnswers(t *testing.T, name, got string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	want, have := strings.Split(string(text), "--- "), strings.Split(got, "--- ")
	if len(want) != len(have) {
		t.Errorf("%d answers, want %d", len(have), len(want))
	}
	for i := range min(len(want), len(have)) {
		if want[i] != have[i] {
			t.Errorf("got  %s\nwant %s", have[i], want[i])
		}
	}
}
