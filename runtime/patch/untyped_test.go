package patch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	rowKind    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Row"}
	newRowKind = schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Row"}
)

// rows returns the field manager of a kind without a Go type, in a version that is not the hub.
func rows(t *testing.T) *patch.FieldManager {
	t.Helper()
	s := runtime.NewScheme()
	for _, gvk := range []schema.GroupVersionKind{rowKind, newRowKind} {
		if err := runtime.Register(s, gvk, runtime.KindOptions[*unstructured.Unstructured]{}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := patch.NewFieldManager(patch.FieldManagerOptions{Scheme: s, Kind: newRowKind})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func rowConfig(t *testing.T, rest string) map[string]any {
	t.Helper()
	config, err := patch.Configuration([]byte(`{"apiVersion":"example.com/v2","kind":"Row",` + rest + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// TestApplyUntyped checks that metadata merges by the lists of ObjectMeta, that objects in the rest merge, and that lists there
// are atomic.
func TestApplyUntyped(t *testing.T) {
	f := rows(t)
	live, err := f.Apply(nil, rowConfig(t, `"metadata":{"name":"a","finalizers":["x/a"],"creationTimestamp":null},"spec":{"o":{"a":1.0},"l":[1]}`), "one", false)
	if err != nil {
		t.Fatal(err)
	}
	live, err = f.Apply(live, rowConfig(t, `"metadata":{"name":"a","finalizers":["x/b"]},"spec":{"o":{"b":2}}`), "two", false)
	if err != nil {
		t.Fatal(err)
	}
	u := live.(*unstructured.Unstructured)
	if u.GroupVersionKind() != rowKind {
		t.Errorf("the result is a %s, not of the hub", u.GroupVersionKind())
	}
	metadata := u.Object["metadata"].(map[string]any)
	if _, ok := metadata["creationTimestamp"]; ok || fmt.Sprint(metadata["finalizers"]) != "[x/a x/b]" {
		t.Errorf("metadata %v", metadata)
	}
	if a := u.Object["spec"].(map[string]any)["o"].(map[string]any)["a"]; a != int64(1) {
		t.Errorf("a is a %T %v", a, a)
	}
	if text, _ := json.Marshal(u.Object["spec"]); string(text) != `{"l":[1],"o":{"a":1,"b":2}}` {
		t.Errorf("spec %s", text)
	}
	if len(u.GetManagedFields()) != 2 || u.GetManagedFields()[0].APIVersion != "example.com/v2" {
		t.Errorf("managers %v", u.GetManagedFields())
	}
	if _, err := f.Apply(live, rowConfig(t, `"metadata":{"name":"a"},"spec":{"l":[2]}`), "two", false); !apierrors.IsConflict(err) {
		t.Errorf("a list of another: %v", err)
	}
	for name, config := range map[string]string{
		"an unknown field of the metadata": `"metadata":{"name":"a","foo":1}`,
		"a label that is a number":         `"metadata":{"name":"a","labels":{"a":1}}`,
	} {
		var bad *patch.Error
		if _, err := f.Apply(live, rowConfig(t, config), "two", false); !errors.As(err, &bad) || bad.Code != 400 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUpdateUntyped(t *testing.T) {
	f := rows(t)
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "x": []any{map[string]any{"y": int64(1)}}, "z": nil}}
	obj.SetGroupVersionKind(rowKind)
	if err := f.Update(nil, obj, "one"); err != nil {
		t.Fatal(err)
	}
	changed := obj.DeepCopy()
	changed.Object["x"] = "text"
	if err := f.Update(obj, changed, "two"); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range changed.GetManagedFields() {
		got[e.Manager] = e.FieldsV1.GetRawString()
	}
	if len(got) != 2 || got["one"] != `{"f:z":{}}` || got["two"] != `{"f:x":{}}` {
		t.Errorf("%v", got)
	}
}

// An entry of a version that the kind does not have makes an update ignore all entries of the request. If the stored object has an
// entry of that version, which the kind had once, only this entry is dropped.
func TestEntriesOfNoVersion(t *testing.T) {
	f := rows(t)
	row := func(entries ...any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Row",
			"metadata": map[string]any{"name": "a", "uid": "u", "managedFields": entries}, "spec": map[string]any{"a": int64(1), "b": int64(1)},
		}}
		return u
	}
	entry := func(manager, version, name string) map[string]any {
		return map[string]any{
			"apiVersion": "example.com/" + version, "fieldsType": "FieldsV1", "manager": manager, "operation": "Update",
			"fieldsV1": map[string]any{"f:spec": map[string]any{"f:" + name: map[string]any{}}},
		}
	}
	managers := func(u *unstructured.Unstructured) (out string) {
		for _, e := range u.GetManagedFields() {
			out += e.Manager + " " + e.APIVersion + ","
		}
		return out
	}
	good, gone := entry("one", "v1", "a"), entry("two", "v0", "b")
	for name, c := range map[string]struct {
		stored, sent *unstructured.Unstructured
		fails        bool
		want         string
	}{
		"sent":            {row(good), row(good, gone), true, "one example.com/v1,"},
		"sent and stored": {row(good, gone), row(good, gone), false, "one example.com/v1,"},
	} {
		if err := f.Update(c.stored, c.sent, "m"); err != nil != c.fails || managers(c.sent) != c.want {
			t.Errorf("%s: %q, %v", name, managers(c.sent), err)
		}
	}
}
