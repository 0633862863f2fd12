package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// specFields is the schema of objects whose spec may have only these members, with these defaults.
type specFields map[string]any

// Conform implements runtime.ObjectSchema.
func (m specFields) Conform(object map[string]any, _ bool, report int) (unknown []string, err error) {
	spec, _ := object["spec"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		if _, ok := m[name]; ok {
			continue
		}
		delete(spec, name)
		if len(unknown) < report {
			unknown = append(unknown, "spec."+name)
		}
	}
	return unknown, nil
}

// SetDefaults implements runtime.ObjectSchema.
func (m specFields) SetDefaults(object map[string]any, _ func(int) error) error {
	spec, ok := object["spec"].(map[string]any)
	for name, value := range m {
		if _, has := spec[name]; ok && !has && value != nil {
			spec[name] = value
		}
	}
	return nil
}

// shapes returns a group with a separate scheme. Its kind Shape has a version for each schema: v1, which is stored, v2, and so
// on.
func shapes(each func(o *untypedOptions, version int), schemas ...specFields) server.Group {
	g := server.Group{Name: "shapes.example.com", Scheme: runtime.NewScheme()}
	for i, m := range schemas {
		o := untypedOptions{Schema: m, Hub: i == 0, ListKind: "ShapeCollection"}
		if each != nil {
			each(&o, i+1)
		}
		g.Versions = append(g.Versions, server.Version{Name: fmt.Sprint("v", i+1), Resources: []server.Resource{server.Kind("Shape", o)}})
	}
	return g
}

func shapePath(version int) string {
	return fmt.Sprintf("/apis/shapes.example.com/v%d/namespaces/default/shapes", version)
}

func shape(version int, name, rest string) string {
	return fmt.Sprintf(`{"apiVersion":"shapes.example.com/v%d","kind":"Shape","metadata":{"name":%q}%s}`, version, name, rest)
}

var shapesResource = schema.GroupResource{Group: "shapes.example.com", Resource: "shapes"}

// specOf returns the spec in an answer, as JSON.
func specOf(t *testing.T, obj map[string]any) string {
	t.Helper()
	text, err := json.Marshal(obj["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestObjectSchema(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, shapes(nil, specFields{"a": nil, "d": "one"}, specFields{"a": nil, "b": nil, "d": "two"}))
	got := untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, "x", `,"spec":{"a":"1","z":"9"}`), 201)
	if spec := specOf(t, got); spec != `{"a":"1","d":"one"}` {
		t.Errorf("created: %s", spec)
	}
	got = untypedAsk(t, srv, "POST", shapePath(1)+"?fieldValidation=Strict", "application/json", shape(1, "y", `,"spec":{"a":"1","z":"9"}`), 400)
	if message := fmt.Sprint(got["message"]); !strings.Contains(message, `unknown field "spec.z"`) {
		t.Errorf("strict: %s", message)
	}
	// Fields that the stored version does not have are lost, and the defaults are those of the stored version.
	got = untypedAsk(t, srv, "POST", shapePath(2), "application/json", shape(2, "y", `,"spec":{"a":"1","b":"2"}`), 201)
	if spec := specOf(t, got); spec != `{"a":"1","d":"two"}` {
		t.Errorf("created in v2: %s", spec)
	}
	got = untypedAsk(t, srv, "PATCH", shapePath(1)+"/x", "application/merge-patch+json", `{"spec":{"q":1,"a":null}}`, 200)
	if spec := specOf(t, got); spec != `{"d":"one"}` {
		t.Errorf("patched: %s", spec)
	}
	list := untypedAsk(t, srv, "GET", shapePath(2), "", "", 200)
	if list["kind"] != "ShapeCollection" || list["apiVersion"] != "shapes.example.com/v2" || len(list["items"].([]any)) != 2 {
		t.Errorf("list: %v", list)
	}
}

func TestObjectSchemaOfWhatIsStored(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, shapes(nil, specFields{"a": nil, "b": nil}))
	h := host(t, srv)
	untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, "x", `,"spec":{"a":"1","b":"2"}`), 201)
	if err := h.Replace([]schema.GroupResource{shapesResource}, shapes(nil, specFields{"a": nil, "c": "new"})); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{shapePath(1) + "/x", shapePath(1)} {
		got := untypedAsk(t, srv, "GET", path, "", "", 200)
		if items, ok := got["items"].([]any); ok {
			got = items[0].(map[string]any)
		}
		if spec := specOf(t, got); spec != `{"a":"1","c":"new"}` {
			t.Errorf("%s: %s", path, spec)
		}
	}
}

func TestVersionsThatDifferInMore(t *testing.T) {
	t.Parallel()
	scale := func(path string) *registry.Scale {
		return &registry.Scale{SpecReplicas: path, StatusReplicas: ".status.replicas"}
	}
	srv := servertest.New(t, shapes(func(o *untypedOptions, version int) {
		switch version {
		case 1:
			o.SelectableFields, o.Scale = []string{"spec.a"}, scale(".spec.m")
		case 2:
			o.SelectableFields, o.IndexFields, o.NoStatus, o.Scale = []string{"spec.b"}, []string{"spec.b"}, true, nil
		case 3:
			o.Unserved = true
		}
	}, specFields{"a": nil, "b": nil, "m": nil}, specFields{"a": nil, "b": nil, "m": nil}, specFields{"a": nil}))
	untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, "x", `,"spec":{"a":"1","b":"2","m":3},"status":{"s":1}`), 201)
	got := untypedAsk(t, srv, "POST", shapePath(2), "application/json", shape(2, "y", `,"spec":{"a":"1","b":"3","m":4},"status":{"s":1}`), 201)
	if got["status"] == nil {
		t.Error("the status of a version without one of its own was dropped")
	}
	if got = untypedAsk(t, srv, "GET", shapePath(1)+"/x", "", "", 200); got["status"] != nil {
		t.Errorf("the status of a version with one of its own was not dropped: %v", got)
	}
	for path, want := range map[string]int{
		shapePath(1) + "/x/scale": 200, shapePath(2) + "/x/scale": 404, shapePath(1) + "/x/status": 200, shapePath(2) + "/x/status": 404,
		shapePath(1) + "?fieldSelector=spec.a%3D1": 200, shapePath(1) + "?fieldSelector=spec.b%3D2": 400,
		shapePath(2) + "?fieldSelector=spec.a%3D1": 400, shapePath(2) + "?fieldSelector=spec.b%3D2": 200,
		shapePath(3): 404, shapePath(3) + "/x": 404, "/apis/shapes.example.com/v3": 404, "/openapi/v3/apis/shapes.example.com/v3": 404,
	} {
		code, body := untypedText(t, srv, "GET", path, "", "")
		if code != want {
			t.Errorf("%s: %d, want %d: %s", path, code, want, body)
		}
		if strings.Contains(path, "spec.b%3D2") && code == 200 && (!strings.Contains(body, `"x"`) || strings.Contains(body, `"y"`)) {
			t.Errorf("%s: %s", path, body)
		}
	}
	for _, served := range only(scrape(t, srv), "apiserver_request_total", "shapes", "version") {
		if strings.HasPrefix(served, "v3") {
			t.Errorf("requests for a version that is not served are counted: %s", served)
		}
	}
	if _, body := untypedText(t, srv, "GET", "/apis/shapes.example.com", "", ""); strings.Contains(body, "v3") || !strings.Contains(body, "v2") {
		t.Errorf("the group: %s", body)
	}
}

func TestConvertUntyped(t *testing.T) {
	t.Parallel()
	convert := func(in *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error) {
		spec, _ := in.Object["spec"].(map[string]any)
		from, name := "colour", "color"
		if to.Version == "v2" {
			from, name = name, from
		}
		if value, ok := spec[from]; ok {
			switch value {
			case "none":
				return nil, errors.New("there is no such colour")
			case "panic":
				panic("no colour")
			case "rename":
				in.SetName("other")
			}
			delete(spec, from)
			spec[name] = value
		}
		in.SetLabels(map[string]string{"version": to.Version})
		in.SetFinalizers([]string{"example.com/not-taken"})
		return in, nil
	}
	srv := servertest.New(t, shapes(func(o *untypedOptions, _ int) { o.Convert = convert }, specFields{"color": nil}, specFields{"colour": nil}))
	got := untypedAsk(t, srv, "POST", shapePath(2), "application/json", shape(2, "x", `,"spec":{"colour":"red"}`), 201)
	if spec := specOf(t, got); spec != `{"colour":"red"}` {
		t.Errorf("in v2: %s", spec)
	}
	got = untypedAsk(t, srv, "GET", shapePath(1)+"/x", "", "", 200)
	if m := got["metadata"].(map[string]any); specOf(t, got) != `{"color":"red"}` || m["finalizers"] != nil || fmt.Sprint(m["labels"]) != "map[version:v1]" {
		t.Errorf("in v1: %v", got)
	}
	for color, want := range map[string]string{"none": "there is no such colour", "panic": "panicked: no colour", "rename": `changed metadata.name from y to other`} {
		got = untypedAsk(t, srv, "POST", shapePath(2), "application/json", shape(2, "y", `,"spec":{"colour":"`+color+`"}`), 400)
		if message := fmt.Sprint(got["message"]); !strings.Contains(message, want) {
			t.Errorf("%s: %s", color, message)
		}
	}
	untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, "z", `,"spec":{"color":"none"}`), 201)
	if got = untypedAsk(t, srv, "GET", shapePath(2)+"/z", "", "", 500); !strings.Contains(fmt.Sprint(got["message"]), "there is no such colour") {
		t.Errorf("an object that v2 cannot show: %v", got)
	}
}

// TestDefaultsOfAVersionThatIsConverted has a version with defaults for fields that mean something else in the hub. An object
// does not get a default for a field that it has. Fields that admission removes get defaults of that version, too.
func TestDefaultsOfAVersionThatIsConverted(t *testing.T) {
	t.Parallel()
	convert := func(in *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error) {
		spec, _ := in.Object["spec"].(map[string]any)
		from, name := "mode", "policy" // mode means something else in v1
		if to.Version == "v2" {
			from, name = name, from
		}
		value, ok := spec[from]
		delete(spec, from)
		if ok {
			spec[name] = value
		}
		return in, nil
	}
	srv := servertest.New(t, shapes(func(o *untypedOptions, _ int) { o.Convert = convert }, specFields{"policy": nil, "mode": nil}, specFields{"mode": "safe"}))
	untypedAsk(t, srv, "POST", shapePath(2), "application/json", shape(2, "x", `,"spec":{"mode":"fast"}`), 201)
	if spec := specOf(t, untypedAsk(t, srv, "GET", shapePath(1)+"/x", "", "", 200)); spec != `{"policy":"fast"}` {
		t.Errorf("created in v2: %s", spec)
	}
	_ = host(t, srv).Admit(admission.Plugin{Name: "own", Mutator: admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
		spec, _ := r.Object().(*unstructured.Unstructured).Object["spec"].(map[string]any)
		delete(spec, "policy")
		return nil
	})})
	untypedAsk(t, srv, "PATCH", shapePath(2)+"/x", "application/merge-patch+json", `{"metadata":{"labels":{"a":"b"}}}`, 200)
	if spec := specOf(t, untypedAsk(t, srv, "GET", shapePath(1)+"/x", "", "", 200)); spec != `{"policy":"safe"}` {
		t.Errorf("after admission: %s", spec)
	}
}

func TestReplaceIsAllOrNothing(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, shapes(nil, specFields{"a": nil}))
	h := host(t, srv)
	if err := h.Replace([]schema.GroupResource{shapesResource}, shapes(func(o *untypedOptions, _ int) { o.Plural = "Not A Plural" }, specFields{})); err == nil {
		t.Fatal("a resource that cannot be served was")
	}
	untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, "x", `,"spec":{"a":"1"}`), 201)
	if err := h.Serve(shapes(nil, specFields{})); !errors.Is(err, server.ErrServed) {
		t.Errorf("served twice: %v", err)
	}
	other := schema.GroupResource{Group: "none.example.com", Resource: "nones"}
	if err := h.Replace([]schema.GroupResource{other}, clockGroup()); err != nil {
		t.Errorf("in the place of nothing: %v", err)
	}
	if err := h.Replace([]schema.GroupResource{shapesResource, {Group: "time.example.com", Resource: "clocks"}}); err != nil {
		t.Errorf("nothing in the place of all: %v", err)
	}
	if code, _ := untypedText(t, srv, "GET", shapePath(1), "", ""); code != 404 {
		t.Errorf("afterwards: %d", code)
	}
}

func TestShowVerbs(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, shapes(nil, specFields{"a": nil}))
	h := host(t, srv)
	verbs := func() string {
		list := untypedAsk(t, srv, "GET", "/apis/shapes.example.com/v1", "", "", 200)
		for _, r := range list["resources"].([]any) {
			if r := r.(map[string]any); r["name"] == "shapes" {
				return fmt.Sprint(r["verbs"])
			}
		}
		return ""
	}
	before := verbs()
	if err := h.ShowVerbs(shapesResource, "get", "list", "dance"); err != nil {
		t.Fatal(err)
	}
	if got := verbs(); got != "[get list]" {
		t.Errorf("shown: %s", got)
	}
	untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, "x", ``), 201)
	if err := h.ShowVerbs(shapesResource); err != nil {
		t.Fatal(err)
	}
	if got := verbs(); got != before || !strings.Contains(got, "create") {
		t.Errorf("shown again: %s, before %s", got, before)
	}
	if err := h.ShowVerbs(schema.GroupResource{Resource: "nones"}, "get"); err == nil {
		t.Error("shown of what is not served")
	}
}

// TestReplaceUnderTraffic replaces a kind while it is read and written. Every answer follows one schema, no request is answered
// as if the resource did not exist, no acknowledged write is lost, and watches end cleanly.
func TestReplaceUnderTraffic(t *testing.T) {
	t.Parallel()
	schemas := []specFields{{"a": nil, "mark": "even"}, {"a": nil, "mark": "odd"}}
	srv := servertest.New(t, shapes(nil, schemas[0]))
	h := host(t, srv)
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	var created, ended atomic.Int64
	fail := func(format string, args ...any) {
		if ctx.Err() == nil {
			t.Errorf(format, args...)
			stop()
		}
	}
	ask := func(method, path, body string) (int, []byte, error) {
		req, err := http.NewRequestWithContext(ctx, method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			return 0, nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := srv.Client().Do(req)
		if err != nil {
			return 0, nil, err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return resp.StatusCode, text, err
	}
	for w := range 2 {
		work.Go(func() {
			for i := 0; ctx.Err() == nil && i < 100000; i++ {
				name := fmt.Sprintf("s-%d-%d", w, i)
				code, text, err := ask("POST", shapePath(1), shape(1, name, `,"spec":{"a":"1","mark":"`+name+`"}`))
				if err != nil || code != 201 {
					fail("create: %d %s %v", code, text, err)
					continue
				}
				created.Add(1)
				if code, text, err = ask("GET", shapePath(1)+"/"+name, ""); err != nil || code != 200 || !strings.Contains(string(text), name) {
					fail("get: %d %s %v", code, text, err)
				}
			}
		})
	}
	work.Go(func() {
		for i := 0; ctx.Err() == nil && i < 100000; i++ {
			code, text, err := ask("GET", shapePath(1)+"?limit=20", "")
			if err != nil || code != 200 {
				fail("list: %d %s %v", code, text, err)
			}
		}
	})
	work.Go(func() {
		for i := 0; ctx.Err() == nil && i < 100000; i++ {
			code, text, err := ask("GET", shapePath(1)+"?watch=true", "")
			if err != nil || code != 200 || strings.Contains(string(text), `"ERROR"`) {
				fail("watch: %d %.300s %v", code, text, err)
			}
			ended.Add(1)
		}
	})
	for i := 1; i <= 40 && ctx.Err() == nil; i++ {
		if err := h.Replace([]schema.GroupResource{shapesResource}, shapes(nil, schemas[i%2])); err != nil {
			fail("replace: %v", err)
		}
		for seen := created.Load(); created.Load() < seen+10 && ctx.Err() == nil; {
			untypedAsk(t, srv, "GET", "/apis/shapes.example.com/v1", "", "", 200)
		}
	}
	failed := t.Failed()
	stop()
	work.Wait()
	if failed {
		return
	}
	list := untypedAsk(t, srv, "GET", shapePath(1), "", "", 200)
	if got := int64(len(list["items"].([]any))); got < created.Load() {
		t.Errorf("%d objects are left of %d", got, created.Load())
	}
	if ended.Load() < 10 {
		t.Errorf("%d watches ended", ended.Load())
	}
}
