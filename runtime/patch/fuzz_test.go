package patch_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/patch"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var documents = []string{
	widget,
	`{"a":{"b":[1,{"c":null}]},"":{"":0},"l":[[],[1]]}`,
}

func FuzzJSONPatch(f *testing.F) {
	for _, p := range []string{
		`[{"op":"add","path":"/a/b/-","value":{"x":[1]}},{"op":"move","from":"/a/b/0","path":"/l/0/0"}]`,
		`[{"op":"copy","from":"/a","path":"/l/1/-1"},{"op":"remove","path":"/a/b/-1/c"}]`,
		`[{"op":"replace","path":"","value":[1]},{"op":"add","path":"/-","value":2}]`,
		`[{"op":"replace","path":""}]`,
		`[{"op":"test","path":"/a/b/1/c","value":null},{"op":"replace","path":"//","value":null}]`,
		`[{"op":"add","path":"x/y","value":1},{"op":"remove","path":"/y"}]`,
		`[{"op":"add","path":"/~01~10","value":1.50}]`,
		`[null,{}]`, `[{"path":null,"from":null,"op":null,"value":null}]`,
	} {
		f.Add(documents[0], p)
		f.Add(documents[1], p)
	}
	f.Fuzz(func(t *testing.T, doc, p string) {
		got, err := spent(t, func() ([]byte, error) { return patch.JSONPatch([]byte(doc), []byte(p)) }, len(doc)+len(p))
		checkResult(t, got, err)
		if !like(doc, p) || strings.Contains(p, "test") {
			return
		}
		want, ok := reference(doc, p)
		if ok != (err == nil) {
			t.Fatalf("%s + %s: %v; the reference says %v %s", doc, p, err, ok, want)
		}
		if ok && !reflect.DeepEqual(parse(t, got), parse(t, want)) {
			t.Fatalf("%s + %s: %s; the reference says %s", doc, p, got, want)
		}
	})
}

// reference applies a JSON patch with the library that kube-apiserver uses.
func reference(doc, p string) (out []byte, ok bool) {
	defer func() {
		if recover() != nil { // it panics if a needed value is missing
			out, ok = nil, false
		}
	}()
	operations, err := jsonpatch.DecodePatch([]byte(p))
	if err != nil {
		return nil, false
	}
	for _, o := range operations { // kube-apiserver decodes the operations a second time, by type
		for _, name := range []string{"op", "path", "from"} {
			var s *string
			if text := o[name]; text != nil && json.Unmarshal(*text, &s) != nil {
				return nil, false
			}
		}
		if o["path"] == nil {
			return nil, false
		}
	}
	out, err = operations.Apply([]byte(doc))
	return out, err == nil
}

func FuzzMergePatch(f *testing.F) {
	for _, p := range []string{
		`{"spec":{"size":null,"color":{"x":null}}}`, `{"a":{"b":[{"c":null}],"d":{"e":null}}}`,
		`{"":null,"l":{"x":[null,{"y":null}]}}`, `{"a":[{"b":null}]}`, `[]`, `null`, `{`,
	} {
		f.Add(documents[0], p)
		f.Add(documents[1], p)
	}
	f.Fuzz(func(t *testing.T, doc, p string) {
		got, err := spent(t, func() ([]byte, error) { return patch.MergePatch([]byte(doc), []byte(p)) }, len(doc)+len(p))
		checkResult(t, got, err)
		if err != nil || !like(doc, p) {
			return
		}
		want, err := jsonpatch.MergePatch([]byte(doc), []byte(p))
		if err != nil {
			t.Fatalf("%s + %s: %s; the reference says %v", doc, p, got, err)
		}
		if !reflect.DeepEqual(parse(t, got), parse(t, want)) {
			t.Fatalf("%s + %s: %s; the reference says %s", doc, p, got, want)
		}
	})
}

// FuzzStrategicMergePatch patches objects of Kubernetes kinds and of a custom kind. The result is an object or a clear error.
func FuzzStrategicMergePatch(f *testing.F) {
	kinds := []struct {
		t   reflect.Type
		doc string
	}{
		{reflect.TypeFor[corev1.Pod](), pod},
		{reflect.TypeFor[appsv1.Deployment](), `{"spec":{"strategy":{"type":"RollingUpdate"},"template":` + pod + `}}`},
		{crateType, crateText},
	}
	for _, p := range []string{
		`{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}],"containers":[{"$patch":"delete","name":"a"},{"name":"b","$retainKeys":["image"],"image":"z"}],"$patch":"merge"}}`,
		`{"spec":{"containers":[{"$patch":"replace"},{"name":1}],"$deleteFromPrimitiveList/x":[1],"volumes":[{"name":"v","hostPath":{"path":"/"},"$retainKeys":"x"}]}}`,
		`{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"finalizers":["b"],"$patch":5,"ownerReferences":[{"uid":"1"}]}}`,
		`{"spec":{"items":[{"id":9007199254740993},{"id":1.0,"items":[{"id":1}]}],"names":["c"],"deep":{"deep":{"names":["x"]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"protocol":null}]}]}},"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`,
		`{"$patch":"delete"}`, `{"$patch":"replace","spec":null}`, `{"$retainKeys":[]}`, `null`, `[]`, `{`,
	} {
		for i := range kinds {
			f.Add(uint8(i), "", p)
			f.Add(uint8(i), p, p)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, doc, p string) {
		k := kinds[int(kind)%len(kinds)]
		if doc == "" {
			doc = k.doc
		}
		got, err := spent(t, func() ([]byte, error) { return patch.StrategicMergePatch([]byte(doc), []byte(p), k.t) }, len(doc)+len(p))
		checkResult(t, got, err)
		if err != nil {
			return
		}
		if _, ok := parse(t, got).(map[string]any); !ok {
			t.Fatalf("no object: %s", got)
		}
		if strings.Contains(p, "$deleteFromPrimitiveList") {
			return // strategicpatch deletes before it adds or afterwards, by the order of a map, and so does kube-apiserver
		}
		if again, err := patch.StrategicMergePatch([]byte(doc), []byte(p), k.t); err != nil || string(again) != string(got) {
			t.Fatalf("another time: %s %v, and %s", again, err, got)
		}
	})
}

// FuzzFieldManager applies a configuration to an object with entries, and updates it. The entries of the result can be decoded,
// and applying the same configuration again changes nothing.
func FuzzFieldManager(f *testing.F) {
	for _, config := range []string{
		`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"b"},"spec":{"size":2,"crew":[{"id":1,"rank":"cook"},{"id":9007199254740993}],"flags":["a"],"notes":{"a":"b"},"paint":{"c":"d"}}}`,
		`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"labels":{"a":null},"finalizers":["x"],"ownerReferences":[{}]},"spec":{"crew":[{"id":null},{}],"flags":["",""],"stops":[null]},"status":{"state":""}}`,
		`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"managedFields":null,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}}}`,
		`{"apiVersion":"example.com/v1","kind":"Boat","spec":null}`, `{}`, `{"apiVersion":{},"kind":[],"metadata":""}`,
	} {
		for _, fields := range []string{
			`{"f:spec":{"f:size":{},"f:crew":{".":{},"k:{\"id\":1}":{".":{},"f:rank":{}}},"f:flags":{"v:\"a\"":{}}}}`, `{".":{}}`, `{}`, ``, `null`, `[]`, `{"f:":{"f:":{}}}`,
			`{"i:0":{},"i:-1":{},"v:1e999":{},"v:{}":{},"v:":{},"k:{}":{},"k:{\"a\":[{}]}":{},"k:null":{},"x":{}}`, `{"f:spec":5}`, `{"f:spec":{"f:size":{"f:deeper":{".":{}}}}}`,
			strings.Repeat(`{"f:a":`, 1000) + "{}" + strings.Repeat("}", 1000), `{"f:metadata":{"f:name":{},"f:managedFields":{}},"f:apiVersion":{}}`,
		} {
			f.Add(config, fields, "example.com/v1", "m", "Update", true)
			f.Add(config, fields, "example.com/v1beta1", "kubectl", "Apply", false)
		}
	}
	f.Add(`{"apiVersion":"example.com/v1","kind":"Boat"}`, `{}`, "a/b/c", "", "", true)
	s := boats(f)
	models := patch.NewModels(s)
	manager, old := fieldManager(f, patch.FieldManagerOptions{Scheme: s, Models: models}), fieldManager(f, patch.FieldManagerOptions{Scheme: s, Models: models, Kind: oldBoatKind})
	f.Fuzz(func(t *testing.T, text, fields, version, name, operation string, force bool) {
		name = strings.ToValidUTF8(name, "") // other names change when they are stored
		live := stored(boatSpec{Name: "n", Size: 1, Crew: []boatSailor{{1, "mate"}}, Flags: []string{"a"}}, metav1.ManagedFieldsEntry{
			Manager: name, Operation: metav1.ManagedFieldsOperationType(operation), APIVersion: version, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}, entry("a", apply, `{"f:spec":{"f:name":{}}}`))
		live.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": text}
		for _, m := range []*patch.FieldManager{manager, old} {
			next := stored(boatSpec{Size: 3}, live.ManagedFields...)
			var err error
			spentBelow(t, mostAllocated, func() { err = m.Update(live, next, name) })
			if err == nil {
				owners(t, next)
			}
		}
		config := map[string]any{}
		if _, err := codec.Unmarshal([]byte(text), &config, codec.Ignore); err != nil || config == nil {
			return
		}
		var obj runtime.Object
		var err error
		spentBelow(t, mostAllocated, func() { obj, err = manager.Apply(live, config, name, force) })
		if err != nil {
			if obj != nil {
				t.Fatal(obj, err)
			}
			return
		}
		shown := owners(t, obj)
		again, err := manager.Apply(obj, config, name, force)
		if err != nil {
			t.Fatalf("%s: the same once more: %v", text, err)
		}
		if got := owners(t, again); got != shown || !reflect.DeepEqual(again.(*boat).Spec, obj.(*boat).Spec) {
			t.Fatalf("%s\n%s\nand then\n%s\n%+v\nand then\n%+v", text, shown, got, obj, again)
		}
	})
}

// like reports whether the reference is right for these inputs. It compares some texts where it should compare values, and it is
// strict about the first byte of a document.
func like(doc, p string) bool {
	for _, text := range []string{doc, p} {
		if !json.Valid([]byte(text)) || strings.Contains(text, `\`) || hasDuplicates(text) {
			return false
		}
		for _, c := range []byte(text) {
			if c < ' ' || c > '~' {
				return false
			}
		}
	}
	return strings.HasPrefix(doc, "{")
}

// hasDuplicates reports whether an object has the same member twice.
func hasDuplicates(text string) bool {
	d := json.NewDecoder(strings.NewReader(text))
	type frame struct {
		seen map[string]bool
		key  bool
	}
	var stack []frame
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, frame{map[string]bool{}, true})
			continue
		case json.Delim('['):
			stack = append(stack, frame{})
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		default:
			if n := len(stack) - 1; n >= 0 && stack[n].seen != nil && stack[n].key {
				key := token.(string)
				if stack[n].seen[key] {
					return true
				}
				stack[n].seen[key], stack[n].key = true, false
				continue
			}
		}
		if n := len(stack) - 1; n >= 0 && stack[n].seen != nil {
			stack[n].key = true
		}
	}
}

// spent applies a patch. It checks that the allocation is linear in the size of document and patch, apart from copied values.
func spent(t *testing.T, apply func() ([]byte, error), size int) (got []byte, err error) {
	t.Helper()
	const base, perByte = 1 << 20, 1000
	spentBelow(t, base+perByte*size, func() { got, err = apply() })
	return got, err
}

func spentBelow(t *testing.T, most int, do func()) {
	t.Helper()
	if n := allocated(do); n > most {
		t.Fatalf("%d bytes were allocated, more than %d", n, most)
	}
}

func checkResult(t *testing.T, got []byte, err error) {
	t.Helper()
	var e *patch.Error
	switch {
	case err == nil && !json.Valid(got):
		t.Fatalf("no JSON: %s", got)
	case err != nil && (!errors.As(err, &e) || e.Code != 400 && e.Code != 413 && e.Code != 422 || e.Message == "" || got != nil):
		t.Fatalf("error %v, result %s", err, got)
	}
}
