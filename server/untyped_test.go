package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kinds without a Go type. Golden files below testdata/wire/untyped test their requests.

type untypedOptions = server.KindOptions[*unstructured.Unstructured]

const untypedPath = "/apis/untyped.example.com/v1/namespaces/default/gadgets"

// untypedAsk makes a request and returns the answer, whose body is an object.
func untypedAsk(t *testing.T, s *servertest.Server, method, path, contentType, body string, want int) map[string]any {
	t.Helper()
	code, text := untypedText(t, s, method, path, contentType, body)
	out := map[string]any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil || code != want {
		t.Fatalf("%s %s: %d %s, %v; want %d", method, path, code, text, err, want)
	}
	return out
}

func untypedText(t *testing.T, s *servertest.Server, method, path, contentType, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func gadget(name, rest string) string {
	return `{"apiVersion":"untyped.example.com/v1","kind":"Gadget","metadata":{"name":"` + name + `"}` + rest + `}`
}

func TestUntypedProtobufIsNotAcceptable(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, untypedGolden())
	if code, text := untypedText(t, s, "GET", untypedPath, "", "", "Accept", "application/vnd.kubernetes.protobuf"); code != 406 {
		t.Errorf("%d %s", code, text)
	}
}

// The definitions are those that kube-apiserver makes for such a custom resource, in OpenAPI v3 and v2; a description is added to
// that of the kind.
func TestUntypedOpenAPI(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, untypedGolden())
	const name = "com.example.untyped.v1.Gadget"
	kind := []any{map[string]any{"group": "untyped.example.com", "version": "v1", "kind": "Gadget"}}
	v3 := untypedAsk(t, s, "GET", "/openapi/v3/apis/untyped.example.com/v1", "", "", 200)
	schemas := v3["components"].(map[string]any)["schemas"].(map[string]any)
	got := schemas[name].(map[string]any)
	delete(got, "description")
	properties, _ := got["properties"].(map[string]any)
	delete(got, "properties")
	if want := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-group-version-kind": kind}; !reflect.DeepEqual(got, want) {
		t.Errorf("v3: %v, want %v", got, want)
	}
	if metadata := fmt.Sprint(properties["metadata"]); len(properties) != 3 || properties["kind"] == nil || properties["apiVersion"] == nil ||
		!strings.Contains(metadata, "meta.v1.ObjectMeta") {
		t.Errorf("v3: properties %v", properties)
	}
	if items := fmt.Sprint(schemas[name+"List"]); !strings.Contains(items, "#/components/schemas/"+name) {
		t.Errorf("v3: the list is %v", items)
	}
	item := v3["paths"].(map[string]any)["/apis/untyped.example.com/v1/namespaces/{namespace}/gadgets/{name}"].(map[string]any)
	patches := item["patch"].(map[string]any)["requestBody"].(map[string]any)["content"].(map[string]any)
	if len(patches) != 3 || patches["application/strategic-merge-patch+json"] != nil {
		t.Errorf("v3: patches %v", patches)
	}
	v2 := untypedAsk(t, s, "GET", "/openapi/v2", "", "", 200)
	got = v2["definitions"].(map[string]any)[name].(map[string]any)
	delete(got, "description")
	if want := map[string]any{"type": "object", "x-kubernetes-group-version-kind": kind}; !reflect.DeepEqual(got, want) {
		t.Errorf("v2: %v, want %v", got, want)
	}
}

// Strategies and admission get their own copies of objects: their changes do not affect the objects that others read.
func TestUntypedObjectsAreNotShared(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var kept []*unstructured.Unstructured // the objects that strategy and admission got, and change later
	spoil := func(obj runtime.Object) {
		mu.Lock()
		defer mu.Unlock()
		if u, ok := obj.(*unstructured.Unstructured); ok && u != nil {
			kept = append(kept, u)
		}
	}
	opts := untypedOptions{Strategy: registry.Strategy[*unstructured.Unstructured]{
		PrepareForUpdate: func(_ *registry.Call, obj, old *unstructured.Unstructured) {
			unstructured.SetNestedField(old.Object, "spoiled", "spec", "inner", "by")
			spoil(old)
		},
		ValidateUpdate: func(_ *registry.Call, obj, old *unstructured.Unstructured) field.ErrorList { spoil(old); return nil },
	}}
	see := admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
		spoil(r.Object())
		spoil(r.Old())
		return nil
	})
	s := servertest.Start(t, server.Options{Policy: server.Policy{Admission: admission.Chain{{Validator: see}}}},
		server.Group{Name: "untyped.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{server.Kind("Gadget", opts)}}}})
	untypedAsk(t, s, "POST", untypedPath, "application/json", gadget("a", `,"spec":{"inner":{"n":1}}`), 201)
	for n := range 3 {
		untypedAsk(t, s, "PATCH", untypedPath+"/a", "application/merge-patch+json", fmt.Sprintf(`{"spec":{"inner":{"n":%d}}}`, n+2), 200)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(kept) < 6 {
		t.Fatalf("only %d objects were shown", len(kept))
	}
	for _, u := range kept {
		u.Object["spec"].(map[string]any)["inner"].(map[string]any)["n"] = "spoiled"
	}
	if spec := untypedAsk(t, s, "GET", untypedPath+"/a", "", "", 200)["spec"]; fmt.Sprint(spec) != "map[inner:map[n:4]]" {
		t.Errorf("spec is %v", spec)
	}
}

// Calls in the process need no kind in their objects, and may write numbers of Go's types.
func TestUntypedInProcess(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, untypedGolden())
	reg, err := host(t, s).Registry(apischema.GroupResource{Group: "untyped.example.com", Resource: "gadgets"})
	if err != nil {
		t.Fatal(err)
	}
	gadgets, err := registry.For[*unstructured.Unstructured](reg, authn.System())
	if err != nil {
		t.Fatal(err)
	}
	in := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"n": 1, "names": []string{"x"}},
	}}
	obj, err := gadgets.Create(t.Context(), "default", in)
	if err != nil {
		t.Fatal(err)
	}
	if obj.GetKind() != "Gadget" || obj.GetGeneration() != 1 || in.GetKind() != "" {
		t.Errorf("created %v of %v", obj, in)
	}
	obj, err = gadgets.Change(t.Context(), "default", "a", func(u *unstructured.Unstructured) error {
		u.Object["spec"].(map[string]any)["n"] = 2
		return nil
	})
	if n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "n"); err != nil || n != 2 || obj.GetGeneration() != 2 {
		t.Errorf("changed: %v, %v", obj, err)
	}
	obj.Object["status"] = map[string]any{"ready": true}
	if obj, err = gadgets.UpdateStatus(t.Context(), "default", obj); err != nil || obj.GetGeneration() != 2 || obj.Object["status"] == nil {
		t.Errorf("status: %v, %v", obj, err)
	}
	if list, err := gadgets.List(t.Context(), "default", registry.ListOptions{}); err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], obj) {
		t.Errorf("list: %v, %v", list, err)
	}
	for name, members := range map[string]map[string]any{
		"another kind": {"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "b"}},
		"no JSON":      {"metadata": map[string]any{"name": "b"}, "spec": func() {}},
		"no metadata":  {"metadata": "b"},
	} {
		if obj, err := gadgets.Create(t.Context(), "default", &unstructured.Unstructured{Object: members}); err == nil {
			t.Errorf("%s: created %v", name, obj)
		}
	}
	if _, gone, err := gadgets.Delete(t.Context(), "default", "a", nil); !gone || err != nil {
		t.Errorf("delete: %v, %v", gone, err)
	}
}

// A column of the program gets objects of the requested version.
func TestUntypedColumns(t *testing.T) {
	t.Parallel()
	opts := untypedOptions{Columns: []server.Column[*unstructured.Unstructured]{{Name: "In", Value: func(u *unstructured.Unstructured) any { return u.GetAPIVersion() }}}}
	s := servertest.New(t, server.Group{Name: "untyped.example.com", Versions: []server.Version{
		{Name: "v1", Resources: []server.Resource{server.Kind("Gadget", opts)}},
		{Name: "v2", Resources: []server.Resource{server.Kind("Gadget", opts)}},
	}})
	untypedAsk(t, s, "POST", untypedPath, "application/json", gadget("a", ""), 201)
	for _, version := range []string{"v1", "v2"} {
		path := strings.Replace(untypedPath, "/v1/", "/"+version+"/", 1)
		code, text := untypedText(t, s, "GET", path, "", "", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
		if want := `"cells":["a","untyped.example.com/` + version + `"]`; code != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %s", version, code, text, want)
		}
	}
}

func TestUntypedRefused(t *testing.T) {
	t.Parallel()
	type typedGadget = runtime.Resource[struct {
		A int `json:"a"`
	}, struct{}]
	version := func(name string, resources ...server.Resource) server.Version {
		return server.Version{Name: name, Resources: resources}
	}
	for _, c := range []struct {
		name, want string
		group      server.Group
	}{
		{"a typed version", "one has a Go type", server.Group{Name: "x.com", Versions: []server.Version{
			version("v1", server.Kind("Gadget", untypedOptions{})), version("v2", server.Kind("Gadget", server.KindOptions[*typedGadget]{}))}}},
		{"a conversion", "need none", server.Group{Name: "x.com", Versions: []server.Version{version("v1", server.Kind("Gadget", untypedOptions{}))},
			Conversions: []server.Conversion{server.Convert(func(_, _ *unstructured.Unstructured) error { return nil }, func(_, _ *unstructured.Unstructured) error { return nil })}}},
		{"a scale without a path", "path", server.Group{Name: "x.com", Versions: []server.Version{version("v1", server.Kind("Gadget", untypedOptions{
			Scale: &registry.Scale{SpecReplicas: "spec.replicas", StatusReplicas: ".status..replicas"}}))}}},
	} {
		if _, err := server.New(server.Options{Groups: []server.Group{c.group}}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Objects can be read after the version that they were stored in is gone, and are selected in any version.
func TestUntypedStoredVersions(t *testing.T) {
	t.Parallel()
	backend := newLasting(t)
	serve := func(stored string) *servertest.Server {
		g := server.Group{Name: "untyped.example.com"}
		for _, v := range []string{"v1", "v2"} {
			g.Versions = append(g.Versions, server.Version{Name: v, Resources: []server.Resource{
				server.Kind("Gadget", untypedOptions{SelectableFields: []string{"spec.color"}, Stored: v == stored}),
			}})
		}
		return servertest.Start(t, server.Options{Storage: storage.Opened(backend)}, g)
	}
	in := func(version string) string { return strings.Replace(untypedPath, "/v1/", "/"+version+"/", 1) }
	untypedAsk(t, serve("v1"), "POST", untypedPath, "application/json", gadget("a", `,"spec":{"color":"red","n":1.0}`), 201)
	s := serve("v2")
	untypedAsk(t, s, "POST", untypedPath, "application/json", gadget("b", `,"spec":{"color":"red"}`), 201)
	for _, version := range []string{"v1", "v2"} {
		list := untypedAsk(t, s, "GET", in(version)+"?fieldSelector=spec.color%3Dred", "", "", 200)
		items, _ := list["items"].([]any)
		for _, item := range items {
			if got := item.(map[string]any)["apiVersion"]; got != "untyped.example.com/"+version {
				t.Errorf("an item of the list in %s is of %v", version, got)
			}
		}
		if len(items) != 2 || list["apiVersion"] != "untyped.example.com/"+version {
			t.Errorf("%s: %v", version, list)
		}
	}
	done, err := s.MigrateStorage(t.Context(), apischema.GroupResource{Group: "untyped.example.com", Resource: "gadgets"}, storage.MigrateOptions{})
	if err != nil || done.Rewritten != 1 {
		t.Errorf("migrated %+v, %v", done, err)
	}
	obj := untypedAsk(t, s, "GET", untypedPath+"/a", "", "", 200)
	if got := fmt.Sprint(obj["apiVersion"], obj["spec"]); got != "untyped.example.com/v1map[color:red n:1]" {
		t.Errorf("after the migration it is %s", got)
	}
}

// An object that was stored before there was a scale, and does not fit it, can have its status written. Another change is refused
// unless it corrects the replicas.
func TestUntypedScaleOfWhatWasStored(t *testing.T) {
	t.Parallel()
	backend := newLasting(t)
	serve := func(scale *registry.Scale) *servertest.Server {
		return servertest.Start(t, server.Options{Storage: storage.Opened(backend)}, server.Group{Name: "untyped.example.com", Versions: []server.Version{
			{Name: "v1", Resources: []server.Resource{server.Kind("Gadget", untypedOptions{Scale: scale})}},
		}})
	}
	untypedAsk(t, serve(nil), "POST", untypedPath, "application/json", gadget("a", `,"spec":{"replicas":"x"}`), 201)
	s := serve(&registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"})
	const merge = "application/merge-patch+json"
	untypedAsk(t, s, "PATCH", untypedPath+"/a/status", merge, `{"status":{"replicas":1}}`, 200)
	untypedAsk(t, s, "PATCH", untypedPath+"/a", merge, `{"spec":{"b":1}}`, 422)
	untypedAsk(t, s, "PATCH", untypedPath+"/a", merge, `{"spec":{"replicas":2}}`, 200)
}

// The code of the program may put any Go value that JSON can express into untyped objects, in every method that it implements.
func TestUntypedGoValuesOfTheProgram(t *testing.T) {
	t.Parallel()
	type options = untypedOptions
	write := func(u *unstructured.Unstructured) {
		u.Object["own"] = map[string]any{"n": 7, "names": []string{"x"}, "all": struct{ A int32 }{1}}
	}
	writeCtx := func(_ *registry.Call, u *unstructured.Unstructured) { write(u) }
	writeNew := func(_ *registry.Call, u, _ *unstructured.Unstructured) { write(u) }
	for name, c := range map[string]struct {
		options options
		mutate  bool
	}{
		"defaults":     {options: options{Default: write}},
		"a mutator":    {mutate: true},
		"prepare":      {options: options{Strategy: registry.Strategy[*unstructured.Unstructured]{PrepareForCreate: writeCtx, PrepareForUpdate: writeNew}}},
		"canonicalize": {options: options{Strategy: registry.Strategy[*unstructured.Unstructured]{Canonicalize: write}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chain := admission.Chain{{Validator: admission.ValidatorFunc(func(context.Context, *admission.Request) error { return nil })}}
			if c.mutate {
				chain[0].Mutator = admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
					if u, ok := r.Object().(*unstructured.Unstructured); ok && u != nil {
						write(u)
					}
					return nil
				})
			}
			s := servertest.Start(t, server.Options{Policy: server.Policy{Admission: chain}}, server.Group{Name: "untyped.example.com", Versions: []server.Version{
				{Name: "v1", Resources: []server.Resource{server.Kind("Gadget", c.options)}},
				{Name: "v2", Resources: []server.Resource{server.Kind("Gadget", options{Default: c.options.Default})}},
			}})
			const merge, apply = "application/merge-patch+json", "application/apply-patch+yaml"
			const item = untypedPath + "/a"
			untypedAsk(t, s, "POST", untypedPath, "application/json", strings.Replace(gadget("", ""), `"name"`, `"generateName":"x-","name"`, 1), 201)
			obj := untypedAsk(t, s, "POST", untypedPath, "application/json", gadget("a", ""), 201)
			for _, ask := range [][3]string{
				{item, merge, `{"metadata":{"labels":{"a":"b"}}}`},
				{item, merge, `{}`},
				{item + "/status", merge, `{"status":{"a":1}}`},
				{item + "?fieldManager=x", apply, gadget("a", `,"status":1`)},
				{strings.Replace(item, "/v1/", "/v2/", 1), merge, `{"metadata":{"labels":{"a":"c"}}}`},
			} {
				obj = untypedAsk(t, s, "PATCH", ask[0], ask[1], ask[2], 200)
				if got := fmt.Sprint(obj["own"]); got != "map[all:map[A:1] n:7 names:[x]]" {
					t.Errorf("%v: %s", ask, got)
				}
			}
			if got := obj["metadata"].(map[string]any)["generation"]; got != 1.0 {
				t.Errorf("generation %v", got)
			}
			untypedAsk(t, s, "DELETE", item, "", "", 200)
		})
	}
}

// A value that cannot be written as JSON is an error that names the function that made it, and nothing is stored.
func TestUntypedGoValueWithoutJSON(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, server.Group{Name: "untyped.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Gadget", untypedOptions{Strategy: registry.Strategy[*unstructured.Unstructured]{
			PrepareForCreate: func(_ *registry.Call, u *unstructured.Unstructured) { u.Object["own"] = func() {} },
		}}),
	}}}})
	answer := untypedAsk(t, s, "POST", untypedPath, "application/json", gadget("a", ""), 500)
	if why := fmt.Sprint(answer["message"]); !strings.Contains(why, "strategy: a value of the untyped object has no JSON") {
		t.Error(why)
	}
	untypedAsk(t, s, "GET", untypedPath+"/a", "", "", 404)
}
