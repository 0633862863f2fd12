package writemodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"
)

// request is a write to one object.
type request struct {
	method      string
	contentType string // of a PATCH
	status      bool   // the request is for the status
	scale       bool   // the request is for the scale, whose kind is Scale
	body        []byte
	manager     string // fieldManager; "" means that of the user agent
	userAgent   string
	force       bool
	dryRun      bool
}

func (r request) managerName() string {
	if r.manager != "" {
		return r.manager
	}
	name, _, _ := strings.Cut(r.userAgent, "/")
	return name
}

// outcome is the expected result of a request.
type outcome struct {
	code int // of the answer; 0 means a refusal with any 4xx code but 409
	// unmergeable says that the stored object causes the failure, so that the code may be 500. A PUT can store elements of a list
	// without their keys. Then nothing can be applied to the list.
	unmergeable bool
	conflict    *metav1.Status // the conflict of an apply
	object      map[string]any // the object in the answer, if the code is 200 or 201
}

// model computes the results of requests to objects of one kind.
type model struct {
	kind         Kind
	scheme       *apiruntime.Scheme
	types        managedfields.TypeConverter
	main, status *managedfields.FieldManager
	scaler       *scaler // nil if the kind has no /scale
}

func newModel(k Kind, scheme *apiruntime.Scheme, types managedfields.TypeConverter) (*model, error) {
	m := &model{kind: k, scheme: scheme, types: types}
	manager := func(sub string, reset ...string) (*managedfields.FieldManager, error) {
		set := fieldpath.NewSet()
		for _, name := range reset {
			set.Insert(fieldpath.MakePathOrDie(name))
		}
		filter := fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(k.gvk.GroupVersion().String()): set})
		return managedfields.NewDefaultFieldManager(types, scheme, scheme, scheme, k.gvk, k.gvk.GroupVersion(), sub, filter)
	}
	var err error
	if !k.status {
		m.main, err = manager("")
		return m, err
	}
	if m.main, err = manager("", "status"); err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(k.fields), func(name string) bool { return name == "status" })
	m.status, err = manager("status", others...)
	return m, err
}

// predict returns the expected result of a request while live, nil for none, is stored. It passes requests to /scale to the
// scaler.
func (m *model) predict(r request, live map[string]any) (outcome, error) {
	switch {
	case r.method == http.MethodPost && live != nil:
		return outcome{code: http.StatusConflict}, nil
	case r.method == http.MethodPost:
		return m.create(r)
	case live == nil && (r.contentType != string(types.ApplyPatchType) || r.status):
		return outcome{code: http.StatusNotFound}, nil
	}
	manager := m.main
	if r.status {
		manager = m.status
	}
	was, err := m.decode(live)
	if err != nil {
		return outcome{}, err
	}
	var obj apiruntime.Object
	switch r.contentType {
	case "": // PUT
		obj, err = m.read(r.body)
	case string(types.JSONPatchType):
		obj, err = m.patch(was, func(text []byte) ([]byte, error) { return jsonPatch(text, r.body) })
	case string(types.MergePatchType):
		obj, err = m.patch(was, func(text []byte) ([]byte, error) { return jsonpatch.MergePatch(text, r.body) })
	case string(types.StrategicMergePatchType):
		obj, err = m.strategic(was, r.body)
	case string(types.ApplyPatchType):
		return m.apply(r, manager, was, live)
	}
	if err != nil || !m.named(obj, was) {
		return outcome{}, nil //nolint:nilerror // the request is refused
	}
	if conflicts(obj, was) {
		return outcome{code: http.StatusConflict}, nil
	}
	return m.settle(m.track(manager, was, obj, r.managerName()), live, r.status)
}

// track updates managedFields for the changes of a request. If the library fails, the entries stay the same. The library receives
// the object as it is stored: it compares lists of Go values as Go does, and would treat an empty list within one as unchanged.
func (m *model) track(manager *managedfields.FieldManager, was, obj apiruntime.Object, name string) apiruntime.Object {
	if fields, err := m.encode(obj); err == nil {
		if stored, err := m.decode(fields); err == nil {
			stored.(metav1.Object).SetManagedFields(obj.(metav1.Object).GetManagedFields()) // the list must stay non-nil if it is empty
			obj = stored
		}
	}
	tracked, err := manager.Update(was, obj, name)
	if err != nil {
		obj.(metav1.Object).SetManagedFields(was.(metav1.Object).GetManagedFields())
		return obj
	}
	return tracked
}

// named reports whether a changed object still has its name.
func (m *model) named(obj, was apiruntime.Object) bool {
	o, w := obj.(metav1.Object), was.(metav1.Object)
	return o.GetName() == w.GetName() && (o.GetNamespace() == "" || o.GetNamespace() == w.GetNamespace())
}

// conflicts reports whether a request is for another state or object than the stored one.
func conflicts(obj, was apiruntime.Object) bool {
	o, w := obj.(metav1.Object), was.(metav1.Object)
	return o.GetResourceVersion() != "" && o.GetResourceVersion() != w.GetResourceVersion() || o.GetUID() != "" && o.GetUID() != w.GetUID()
}

func (m *model) create(r request) (outcome, error) {
	obj, err := m.read(r.body)
	if err != nil {
		return outcome{}, nil //nolint:nilerror // the request is refused
	}
	return m.begin(m.track(m.main, m.kind.new(), obj, r.managerName()))
}

// begin completes a new object.
func (m *model) begin(obj apiruntime.Object) (outcome, error) {
	made, err := m.encode(obj)
	if err != nil {
		return outcome{}, err
	}
	metadata := made["metadata"].(map[string]any)
	metadata["namespace"] = namespace
	if m.kind.status {
		delete(made, "status")
	}
	if m.kind.generation {
		metadata["generation"] = int64(1)
	}
	return m.finish(http.StatusCreated, made)
}

func (m *model) apply(r request, manager *managedfields.FieldManager, was apiruntime.Object, live map[string]any) (outcome, error) {
	text, err := yaml.YAMLToJSON(r.body)
	if err != nil {
		return outcome{}, err
	}
	config := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &config); err != nil {
		return outcome{}, err
	}
	obj, err := manager.Apply(was, &unstructured.Unstructured{Object: config}, r.managerName(), r.force)
	var refused apierrors.APIStatus
	switch {
	case errors.As(err, &refused) && refused.Status().Code == http.StatusConflict:
		status := refused.Status()
		return outcome{code: http.StatusConflict, conflict: &status}, nil
	case err != nil:
		_, bad := m.types.ObjectToTyped(was, typed.AllowDuplicates)
		return outcome{unmergeable: bad != nil}, nil
	}
	m.scheme.Default(obj)
	if live == nil {
		return m.begin(obj)
	}
	if conflicts(obj, was) {
		return outcome{code: http.StatusConflict}, nil
	}
	return m.settle(obj, live, r.status)
}

// settle completes the new state of a stored object. Fields that an endpoint does not change stay the same, the generation counts
// changes of content, and managers that changed nothing keep their times.
func (m *model) settle(obj apiruntime.Object, live map[string]any, status bool) (outcome, error) {
	made, err := m.encode(obj)
	if err != nil {
		return outcome{}, err
	}
	if live, err = m.canonical(live); err != nil {
		return outcome{}, err
	}
	metadata, was := made["metadata"].(map[string]any), live["metadata"].(map[string]any)
	for _, name := range []string{"name", "namespace", "uid", "creationTimestamp", "resourceVersion", "generation", "selfLink"} {
		take(metadata, was, name)
	}
	switch {
	case status:
		entries := metadata["managedFields"]
		changed := made["status"]
		made = apiruntime.DeepCopyJSON(live)
		metadata = made["metadata"].(map[string]any)
		put(made, "status", changed)
		put(metadata, "managedFields", entries)
	case m.kind.status:
		take(made, live, "status")
	}
	if m.kind.generation && !status && !sameContent(made, live) {
		generation, _ := was["generation"].(int64)
		metadata["generation"] = generation + 1
	}
	if reflect.DeepEqual(timeless(made), timeless(live)) {
		take(metadata, was, "managedFields")
	}
	return m.finish(http.StatusOK, made)
}

func (m *model) finish(code int, made map[string]any) (outcome, error) {
	made, err := m.canonical(made)
	return outcome{code: code, object: made}, err
}

// patch applies change to the JSON of an object.
func (m *model) patch(was apiruntime.Object, change func([]byte) ([]byte, error)) (apiruntime.Object, error) {
	text, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	if text, err = change(text); err != nil {
		return nil, err
	}
	return m.read(text)
}

func jsonPatch(text, body []byte) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil { // the library panics if a required value is missing
			err = fmt.Errorf("JSON patch: %v", p)
		}
	}()
	operations, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	// One operation at a time: a test in the library does not see a null that an operation before it has set.
	for i := range operations {
		if text, err = operations[i : i+1].Apply(text); err != nil {
			return nil, err
		}
	}
	return text, nil
}

func (m *model) strategic(was apiruntime.Object, body []byte) (obj apiruntime.Object, err error) {
	defer func() {
		if p := recover(); p != nil { // the library panics for some malformed directives
			err = fmt.Errorf("strategic merge patch: %v", p)
		}
	}()
	fields, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(was)
	if err != nil {
		return nil, err
	}
	changes := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &changes); err != nil {
		return nil, err
	}
	if fields, err = strategicpatch.StrategicMergeMapPatch(fields, changes, m.kind.new()); err != nil {
		return nil, err
	}
	obj = m.kind.new()
	if err := apiruntime.DefaultUnstructuredConverter.FromUnstructured(fields, obj); err != nil {
		return nil, err
	}
	m.scheme.Default(obj)
	return obj, nil
}

// read decodes a client's object and sets its defaults.
func (m *model) read(text []byte) (apiruntime.Object, error) {
	obj := m.kind.new()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, obj); err != nil {
		return nil, err
	}
	if got := obj.GetObjectKind().GroupVersionKind(); got != m.kind.gvk {
		return nil, fmt.Errorf("%s is another kind", got)
	}
	m.scheme.Default(obj)
	return obj, nil
}

// decode returns the object with these fields; nil fields mean an empty object.
func (m *model) decode(fields map[string]any) (apiruntime.Object, error) {
	if fields == nil {
		return m.kind.new(), nil
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	obj := m.kind.new()
	return obj, kjson.UnmarshalCaseSensitivePreserveInts(text, obj)
}

func (m *model) encode(obj apiruntime.Object) (map[string]any, error) {
	obj.GetObjectKind().SetGroupVersionKind(m.kind.gvk)
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &fields); err != nil {
		return nil, err
	}
	return fields, nil
}

// canonical returns the fields as the Go type encodes them.
func (m *model) canonical(fields map[string]any) (map[string]any, error) {
	obj, err := m.decode(fields)
	if err != nil {
		return nil, err
	}
	return m.encode(obj)
}

// take sets a field in to as it is in from. It deletes the field if from lacks it.
func take(to, from map[string]any, name string) {
	put(to, name, from[name])
}

func put(to map[string]any, name string, v any) {
	if delete(to, name); v != nil {
		to[name] = v
	}
}

// sameContent reports whether everything except metadata and status is equal.
func sameContent(a, b map[string]any) bool {
	strip := func(fields map[string]any) map[string]any {
		out := map[string]any{}
		for name, v := range fields {
			if name != "metadata" && name != "status" {
				out[name] = v
			}
		}
		return out
	}
	return reflect.DeepEqual(strip(a), strip(b))
}

// timeless returns an object without the times in its managedFields.
func timeless(fields map[string]any) map[string]any {
	out := apiruntime.DeepCopyJSON(fields)
	entries, _, _ := unstructured.NestedSlice(out, "metadata", "managedFields")
	for _, e := range entries {
		delete(e.(map[string]any), "time")
	}
	if entries != nil {
		out["metadata"].(map[string]any)["managedFields"] = entries
	}
	return out
}
