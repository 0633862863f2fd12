package writemodel

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// writer makes random requests to one object.
type writer struct {
	*generator
	kind       Kind
	definition string
	name       string
	managers   []string
	applied    map[string]map[string]any // applied configurations, by manager and endpoint
}

func newWriter(g *generator, k Kind, definition, name string) *writer {
	w := &writer{
		generator: g, kind: k, definition: definition, name: name, applied: map[string]map[string]any{},
		managers: []string{"one", "two", "kubectl-client-side-apply"},
	}
	if g.chance(20) { // so many that the oldest entries are merged
		for i := range 12 {
			w.managers = append(w.managers, fmt.Sprint("many-", i))
		}
	}
	return w
}

// next returns a request for the stored state, nil for none.
func (w *writer) next(live map[string]any) request {
	r := request{manager: pick(w.generator, w.managers...), userAgent: "curl/8", dryRun: w.chance(5)}
	if w.chance(10) {
		r.manager, r.userAgent = "", pick(w.generator, "kubectl/v1.37", "agent", "x/1 y")
	}
	if live == nil {
		w.begin(&r)
		return r
	}
	if r.status = w.kind.status && w.chance(25); w.chance(2) {
		r.method, r.body, r.status = http.MethodPost, w.encode(w.object(w.kind, w.definition, w.name, false)), false
		return r
	}
	switch n := w.IntN(100); {
	case w.kind.scale != nil && w.chance(12):
		w.rescale(&r, live)
	case n < 20:
		r.method, r.body = http.MethodPut, w.encode(w.replacement(live))
	case n < 30:
		r.method, r.contentType, r.body = http.MethodPatch, string(types.JSONPatchType), w.operations(live)
	case n < 40:
		r.method, r.contentType, r.body = http.MethodPatch, string(types.MergePatchType), w.encode(w.nulls(w.part(live, true)).(map[string]any))
	case n < 55:
		r.method, r.contentType, r.body = http.MethodPatch, string(types.StrategicMergePatchType), w.encode(w.directives(w.part(live, false), live))
	default:
		w.apply(&r, live)
	}
	return r
}

// begin makes a request for an object that does not exist.
func (w *writer) begin(r *request) {
	switch obj := w.object(w.kind, w.definition, w.name, w.chance(30)); {
	case w.chance(10):
		r.method, r.body = http.MethodPut, w.encode(obj)
	case w.chance(60):
		if r.method = http.MethodPost; w.chance(30) {
			w.annotate(obj)
		}
		r.body = w.encode(obj)
	default:
		r.status = w.kind.status && w.chance(10)
		w.apply(r, nil)
	}
}

// rescale makes r a request to the object's Scale.
func (w *writer) rescale(r *request, live map[string]any) {
	r.status, r.scale = false, true
	scale := map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale",
		"metadata": map[string]any{"name": w.name, "namespace": namespace},
		"spec":     map[string]any{"replicas": int64(w.IntN(4))},
	}
	if r.method = http.MethodPatch; w.chance(10) {
		scale["metadata"].(map[string]any)["resourceVersion"] = pick(w.generator, "1", live["metadata"].(map[string]any)["resourceVersion"].(string))
	}
	switch w.IntN(4) {
	case 0:
		r.method = http.MethodPut
	case 1:
		delete(scale, "metadata")
		r.contentType = string(types.MergePatchType)
	case 2:
		r.contentType, r.body = string(types.JSONPatchType), w.encode([]any{map[string]any{"op": "add", "path": "/spec/replicas", "value": w.IntN(4)}})
		return
	case 3:
		r.contentType, r.force = string(types.ApplyPatchType), w.chance(40)
		r.manager = pick(w.generator, "kubectl", "apply-a", "apply-b")
		if w.chance(15) {
			delete(scale, "spec")
		}
	}
	r.body = w.encode(scale)
}

// annotate changes obj to what kubectl apply sends.
func (w *writer) annotate(obj map[string]any) {
	metadata := obj["metadata"].(map[string]any)
	config := apiruntime.DeepCopyJSON(obj)
	delete(config["metadata"].(map[string]any), "managedFields")
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[lastApplied] = string(w.encode(config))
}

// replacement returns the body of a PUT: a changed copy of the object.
func (w *writer) replacement(live map[string]any) map[string]any {
	was := apiruntime.DeepCopyJSON(live)
	obj := w.mix(was, w.object(w.kind, w.definition, w.name, true)).(map[string]any)
	if w.chance(10) {
		obj = was
	}
	for _, name := range []string{"apiVersion", "kind"} {
		obj[name] = live[name]
	}
	metadata, old := obj["metadata"].(map[string]any), live["metadata"].(map[string]any)
	for _, name := range []string{"name", "namespace", "uid", "creationTimestamp", "generation", "resourceVersion"} {
		take(metadata, old, name)
	}
	if w.chance(50) {
		delete(metadata, "resourceVersion")
	}
	if w.chance(3) {
		metadata["resourceVersion"] = "1"
	}
	take(metadata, apiruntime.DeepCopyJSON(old), "managedFields")
	switch entries, _ := metadata["managedFields"].([]any); {
	case w.chance(40):
		delete(metadata, "managedFields")
	case w.chance(4):
		metadata["managedFields"] = pick(w.generator, []any{map[string]any{}}, []any{})
	case w.chance(4):
		metadata["managedFields"] = []any{map[string]any{"manager": "odd", "operation": "Nothing", "apiVersion": "v0", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}}}
	case w.chance(10) && len(entries) > 0:
		metadata["managedFields"] = entries[1:]
	}
	if w.chance(8) {
		w.annotate(obj)
	}
	return obj
}

// part returns a part of a new object in the form of a patch.
func (w *writer) part(live map[string]any, merge bool) map[string]any {
	obj := w.object(w.kind, w.definition, w.name, true)
	delete(obj, "apiVersion")
	delete(obj, "kind")
	metadata := obj["metadata"].(map[string]any)
	delete(metadata, "name")
	if w.chance(5) {
		metadata["resourceVersion"] = pick(w.generator, "1", live["metadata"].(map[string]any)["resourceVersion"].(string))
	}
	if merge && w.chance(3) {
		metadata["managedFields"] = pick[any](w.generator, []any{map[string]any{}}, []any{}, nil)
	}
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		if w.chance(30) {
			delete(obj, name)
		}
	}
	return obj
}

// nulls replaces some of the members of a patch by null.
func (w *writer) nulls(v any) any {
	fields, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if w.nulls(fields[name]); w.chance(8) && !strings.HasPrefix(name, "$") {
			fields[name] = nil
		}
	}
	return fields
}

// directives returns a strategic merge patch made from a part of an object.
func (w *writer) directives(patch, live map[string]any) map[string]any {
	for _, name := range slices.Sorted(maps.Keys(patch)) {
		switch v := patch[name].(type) {
		case map[string]any:
			old, _ := live[name].(map[string]any)
			w.directives(v, old)
			if w.chance(3) && name != "metadata" {
				v["$patch"] = pick(w.generator, "replace", "delete", "merge")
			}
		case []any:
			w.listDirectives(patch, name, v, live[name])
		default:
			if w.chance(8) {
				patch[name] = nil
			}
		}
	}
	return patch
}

func (w *writer) listDirectives(patch map[string]any, name string, list []any, live any) {
	for _, v := range list {
		if element, ok := v.(map[string]any); ok {
			if w.directives(element, nil); w.chance(15) {
				element["$patch"] = pick(w.generator, "delete", "delete", "replace", "merge")
			}
		}
	}
	old, _ := live.([]any)
	switch {
	case name == "finalizers" && w.chance(40):
		gone := w.some([]any{"example.com/a", "example.com/b"})
		patch["$deleteFromPrimitiveList/finalizers"] = gone
		// With a value in both, the library's result is random, because it iterates over a map.
		if patch[name] = slices.DeleteFunc(list, func(v any) bool { return slices.Contains(gone, v) }); w.chance(50) {
			delete(patch, name)
		}
	case name == "finalizers" && w.chance(30):
		patch["$setElementOrder/finalizers"] = append(slices.Clone(list), old...)
	case len(old) > 0 && w.chance(10):
		var order []any
		for _, v := range append(slices.Clone(list), old...) {
			if element, ok := v.(map[string]any); ok && element["name"] != nil {
				order = append(order, map[string]any{"name": element["name"]})
			}
		}
		patch["$setElementOrder/"+name] = order
	}
}

// operations returns a JSON patch.
func (w *writer) operations(live map[string]any) []byte {
	var paths []string
	values := map[string]any{}
	w.walk("", live, func(path string, v any) {
		paths = append(paths, path)
		values[path] = v
	})
	var out []any
	for range 1 + w.IntN(3) {
		op := map[string]any{"op": pick(w.generator, "add", "replace", "replace", "remove", "test", "copy", "move")}
		path := "/metadata/labels"
		if len(paths) > 0 && !w.chance(15) {
			path = pick(w.generator, paths...)
		}
		op["path"], op["value"] = path, values[path]
		switch op["op"] {
		case "add":
			if op["value"] = w.labels(); path != "/metadata/labels" {
				op["path"], op["value"] = path[:strings.LastIndexByte(path, '/')]+"/"+pick(w.generator, w.word(), "0", "-"), values[path]
			}
		case "replace":
			op["value"] = w.other(values[path])
		case "test":
			if w.chance(10) {
				op["value"] = "other"
			}
		case "copy", "move":
			op["from"] = path
			if i := strings.LastIndexByte(path, '/'); w.chance(50) {
				op["path"] = path[:i] + "/" + w.word()
			}
		}
		out = append(out, op)
	}
	if w.chance(4) {
		out = append(out, map[string]any{"op": "add", "path": "/metadata/managedFields", "value": []any{map[string]any{}}})
	}
	return w.encode(out)
}

// other returns another value of the same type.
func (w *writer) other(v any) any {
	switch v := v.(type) {
	case string:
		if v == "a" || v == "b" || v == "c" || v == "d" {
			return w.word()
		}
	case int64:
		return int64(w.IntN(4))
	case bool:
		return !v
	case map[string]any, []any:
		return w.mix(v, nil)
	}
	return v
}

// walk calls visit with the paths of an object that a client may change.
func (w *writer) walk(path string, v any, visit func(path string, v any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			top := strings.Count(at, "/") == 1
			if top && name != "metadata" || strings.HasPrefix(at, "/metadata/") && slices.Contains([]string{"labels", "annotations", "finalizers"}, name) || strings.Count(at, "/") > 2 || !strings.HasPrefix(at, "/metadata") {
				if name != "apiVersion" && name != "kind" || !top {
					visit(at, v[name])
					w.walk(at, v[name], visit)
				}
			} else if at == "/metadata" {
				w.walk(at, v[name], visit)
			}
		}
	case []any:
		for i := range v {
			at := fmt.Sprintf("%s/%d", path, i)
			visit(at, v[i])
			w.walk(at, v[i], visit)
		}
	}
}

// apply makes r an apply of a changed copy of the configuration that the manager applied before.
func (w *writer) apply(r *request, live map[string]any) {
	r.method, r.contentType, r.force = http.MethodPatch, string(types.ApplyPatchType), w.chance(40)
	if r.manager = pick(w.generator, "kubectl", "apply-a", "apply-b"); w.chance(10) {
		r.manager = pick(w.generator, w.managers...)
	}
	key := fmt.Sprint(r.manager, r.status)
	fresh := w.object(w.kind, w.definition, w.name, r.status || w.chance(15))
	config := fresh
	if before := w.applied[key]; before != nil && !w.chance(15) {
		config = w.mix(apiruntime.DeepCopyJSON(before), fresh).(map[string]any)
		config["apiVersion"], config["kind"] = fresh["apiVersion"], fresh["kind"]
		if w.chance(15) {
			config = apiruntime.DeepCopyJSON(before)
		}
	}
	if r.status {
		for name := range config {
			if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, name) && w.chance(90) {
				delete(config, name)
			}
		}
	}
	if live != nil && w.chance(10) {
		config["metadata"].(map[string]any)["uid"] = live["metadata"].(map[string]any)["uid"]
	}
	w.applied[key] = config
	if r.body = w.encode(config); w.chance(50) {
		if text, err := yaml.JSONToYAML(r.body); err == nil {
			r.body = text
		}
	}
}

func (w *writer) encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // generated values can be encoded
	}
	return text
}
