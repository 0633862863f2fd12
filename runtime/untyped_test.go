package runtime_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	gadgetV1 = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	gadgetV2 = schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Gadget"}
	gizmoV1  = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gizmo"}
)

type (
	untypedOptions = runtime.KindOptions[*unstructured.Unstructured]
	typedGadget    = runtime.Resource[struct{ A int }, struct{}]
)

func registerUntyped(t *testing.T, s *runtime.Scheme, gvk schema.GroupVersionKind, o untypedOptions) {
	t.Helper()
	if err := runtime.Register(s, gvk, o); err != nil {
		t.Fatal(err)
	}
}

func untypedObject(gvk schema.GroupVersionKind, members map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: members}
	u.SetGroupVersionKind(gvk)
	return u
}

func TestUntypedKindsShareOneGoType(t *testing.T) {
	s := runtime.NewScheme()
	registerUntyped(t, s, gadgetV1, untypedOptions{Default: func(u *unstructured.Unstructured) { u.Object["defaulted"] = true }})
	registerUntyped(t, s, gadgetV2, untypedOptions{})
	registerUntyped(t, s, gizmoV1, untypedOptions{})
	for _, gvk := range []schema.GroupVersionKind{gadgetV1, gadgetV2, gizmoV1} {
		k := s.Lookup(gvk)
		if !k.Untyped() || k.Type.Name() != "Unstructured" || k.ListType.Name() != "UnstructuredList" {
			t.Errorf("%s: Untyped %v, types %v and %v", gvk, k.Untyped(), k.Type, k.ListType)
		}
		if got := s.KindOf(k.New()); got != k {
			t.Errorf("a new %s is of %v", gvk, got)
		}
		list := k.NewList()
		if got := s.KindOf(list); got != k || list.GetObjectKind().GroupVersionKind() != k.ListGVK {
			t.Errorf("a new list of %s is of %v", gvk, got)
		}
		for _, gvk := range []schema.GroupVersionKind{gvk, k.ListGVK} {
			obj, err := s.New(gvk)
			if err != nil || obj.GetObjectKind().GroupVersionKind() != gvk {
				t.Errorf("New(%s) is %v, %v", gvk, obj, err)
			}
			if kinds, _, err := s.ObjectKinds(obj); err != nil || len(kinds) != 1 || kinds[0] != gvk {
				t.Errorf("ObjectKinds of a %s: %v, %v", gvk, kinds, err)
			}
		}
	}
	obj := untypedObject(gadgetV1, map[string]any{})
	if s.Default(obj); obj.Object["defaulted"] != true {
		t.Error("no defaults")
	}
	other := untypedObject(gadgetV2, map[string]any{})
	if s.Default(other); other.Object["defaulted"] != nil {
		t.Error("defaults of another version")
	}
	for name, obj := range map[string]runtime.Object{
		"without a kind": &unstructured.Unstructured{}, "of no kind there is": untypedObject(schema.GroupVersionKind{Version: "v1", Kind: "X"}, map[string]any{}),
		"a list of no kind": &unstructured.UnstructuredList{}, "nil": (*unstructured.Unstructured)(nil), "a nil list": (*unstructured.UnstructuredList)(nil),
		"a list that is called as an object": &unstructured.UnstructuredList{Object: untypedObject(gadgetV1, map[string]any{}).Object},
	} {
		if k := s.KindOf(obj); k != nil {
			t.Errorf("%s: is of %s", name, k.GVK)
		}
	}
}

func TestUntypedObjectsOfAGoTypeAreOfNoKind(t *testing.T) {
	s := runtime.NewScheme()
	if err := runtime.Register[*typedGadget](s, gadgetV1, runtime.KindOptions[*typedGadget]{}); err != nil {
		t.Fatal(err)
	}
	if k := s.KindOf(untypedObject(gadgetV1, map[string]any{})); k != nil {
		t.Errorf("is of %s, whose objects are %v", k.GVK, k.Type)
	}
}

func TestUntypedVersionsDifferInAPIVersionAlone(t *testing.T) {
	s := runtime.NewScheme()
	registerUntyped(t, s, gadgetV1, untypedOptions{})
	registerUntyped(t, s, gadgetV2, untypedOptions{Hub: true})
	registerUntyped(t, s, gizmoV1, untypedOptions{})
	if hub, _ := s.Hub(gadgetV1.GroupKind()); hub != gadgetV2 || !s.Converts(gadgetV1) || !s.Converts(gadgetV2) {
		t.Errorf("hub %s, Converts %v %v", hub, s.Converts(gadgetV1), s.Converts(gadgetV2))
	}
	obj := untypedObject(gadgetV1, map[string]any{"spec": map[string]any{"a": int64(1)}})
	out, err := s.ToVersion(obj, gadgetV2.GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	got := out.(*unstructured.Unstructured)
	if got.GroupVersionKind() != gadgetV2 || obj.GroupVersionKind() != gadgetV1 {
		t.Errorf("%s became %s", obj.GroupVersionKind(), got.GroupVersionKind())
	}
	got.Object["spec"].(map[string]any)["a"] = int64(2)
	if obj.Object["spec"].(map[string]any)["a"] != int64(1) {
		t.Error("the result shares what it was made of")
	}
	if same, err := s.ToVersion(obj, gadgetV1.GroupVersion()); err != nil || same != runtime.Object(obj) {
		t.Errorf("in its own version it is %v, %v", same, err)
	}
	list := s.Lookup(gadgetV1).NewList().(*unstructured.UnstructuredList)
	list.Items = append(list.Items, *obj)
	converted, err := s.ToVersion(list, gadgetV2.GroupVersion())
	if err != nil || converted.GetObjectKind().GroupVersionKind() != s.Lookup(gadgetV2).ListGVK {
		t.Fatalf("list: %v, %v", converted, err)
	}
	if item := converted.(*unstructured.UnstructuredList).Items[0]; item.GroupVersionKind() != gadgetV2 || list.Items[0].GroupVersionKind() != gadgetV1 {
		t.Errorf("item: %s of %s", item.GroupVersionKind(), list.Items[0].GroupVersionKind())
	}
	if _, err := s.ToVersion(untypedObject(gizmoV1, map[string]any{}), gadgetV2.GroupVersion()); !apiruntime.IsNotRegisteredError(err) {
		t.Errorf("a version that the kind has not: %v", err)
	}
	into := untypedObject(gadgetV2, map[string]any{})
	if err := s.Convert(obj, into, nil); err != nil || into.GroupVersionKind() != gadgetV2 || into.Object["spec"] == nil {
		t.Errorf("Convert: %v, %v", into, err)
	}
}

func TestUntypedRefused(t *testing.T) {
	s := runtime.NewScheme()
	registerUntyped(t, s, gadgetV1, untypedOptions{})
	typedV1 := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Typed"}
	if err := runtime.Register[*typedGadget](s, typedV1, runtime.KindOptions[*typedGadget]{}); err != nil {
		t.Fatal(err)
	}
	typedV2 := typedV1
	typedV2.Version = "v2"
	type anotherGadget = runtime.Resource[struct{ B int }, struct{}]
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{"twice", "registered already", runtime.Register(s, gadgetV1, untypedOptions{})},
		{"reserved", "reserved", runtime.Register(s, schema.GroupVersionKind{Version: "v1", Kind: "Status"}, untypedOptions{})},
		{"no name", "needs a version and a name", runtime.Register(s, schema.GroupVersionKind{Version: "v1"}, untypedOptions{})},
		{"a version without a Go type", "one has a Go type", runtime.Register(s, typedV2, untypedOptions{})},
		{"a version with a Go type", "one has a Go type", runtime.Register[*anotherGadget](s, gadgetV2, runtime.KindOptions[*anotherGadget]{})},
		{"a path with an empty name", "empty", runtime.Register(s, gizmoV1, untypedOptions{SelectableFields: []string{"spec..a"}})},
		{"a list of the metadata", "only strings", runtime.Register(s, gizmoV1, untypedOptions{SelectableFields: []string{"metadata.labels"}})},
		{"renamed fields", "have the same fields", runtime.Register(s, gizmoV1, untypedOptions{RenamedFields: map[string]string{"a": "b"}})},
		{"the name", "always selectable", runtime.Register(s, gizmoV1, untypedOptions{SelectableFields: []string{"metadata.name"}})},
		{"a conversion", "need none", runtime.AddConversion(s, func(_, _ *unstructured.Unstructured) error { return nil }, func(_, _ *unstructured.Unstructured) error { return nil })},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, c.err, c.want)
		}
	}
}

func TestUntypedFields(t *testing.T) {
	s := runtime.NewScheme()
	registerUntyped(t, s, gadgetV1, untypedOptions{SelectableFields: []string{"spec.color", "metadata.generateName"}})
	registerUntyped(t, s, gadgetV2, untypedOptions{SelectableFields: []string{"spec.color"}})
	for label, want := range map[string]string{"spec.color": "spec.color", "metadata.name": "metadata.name", "metadata.generateName": "metadata.generateName"} {
		if got, _, err := s.ConvertFieldLabel(gadgetV1, label, ""); got != want || err != nil {
			t.Errorf("%s: %q, %v", label, got, err)
		}
	}
	if _, _, err := s.ConvertFieldLabel(gizmoV1, "spec.color", ""); err == nil {
		t.Error("a field of no kind is known")
	}
	if paths := s.FieldPaths(gadgetV1.GroupKind()); paths != nil {
		t.Errorf("fields are elsewhere: %v", paths)
	}
}

func TestUntypedUnregister(t *testing.T) {
	s := runtime.NewScheme()
	registerUntyped(t, s, gadgetV1, untypedOptions{})
	registerUntyped(t, s, gizmoV1, untypedOptions{})
	s.Unregister(gadgetV1)
	if s.Lookup(gadgetV1) != nil || s.KindOf(untypedObject(gadgetV1, map[string]any{})) != nil {
		t.Error("it is still there")
	}
	if s.KindOf(untypedObject(gizmoV1, map[string]any{})) == nil {
		t.Error("another kind of no Go type has gone with it")
	}
	registerUntyped(t, s, gadgetV1, untypedOptions{})
}

func TestUntypedKindsAreNotAddedToClientsSchemes(t *testing.T) {
	s, dst := runtime.NewScheme(), apiruntime.NewScheme()
	registerUntyped(t, s, gadgetV1, untypedOptions{})
	registerUntyped(t, s, gizmoV1, untypedOptions{})
	if err := s.AddTo(dst); err != nil {
		t.Fatal(err)
	}
	if dst.Recognizes(gadgetV1) || dst.Recognizes(s.Lookup(gadgetV1).ListGVK) {
		t.Error("a client would make typed objects of it")
	}
	if !dst.Recognizes(gadgetV1.GroupVersion().WithKind("ListOptions")) {
		t.Error("the options of requests are missing")
	}
}

// onlySpec is a schema that specifies the member spec alone.
type onlySpec struct{}

func (onlySpec) Conform(object map[string]any, _ bool, report int) (unknown []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch name {
		case "apiVersion", "kind", "metadata", "spec":
			continue
		}
		delete(object, name)
		if len(unknown) < report {
			unknown = append(unknown, name)
		}
	}
	return unknown, nil
}

func (onlySpec) SetDefaults(object map[string]any, _ func(int) error) error {
	if object["spec"] == nil {
		object["spec"] = map[string]any{}
	}
	return nil
}

func TestUntypedListKind(t *testing.T) {
	s := runtime.NewScheme()
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Sheep"}
	if err := runtime.Register(s, gvk, untypedOptions{ListKind: "Flock"}); err != nil {
		t.Fatal(err)
	}
	flock := gvk.GroupVersion().WithKind("Flock")
	list, err := s.New(flock)
	if err != nil {
		t.Fatal(err)
	}
	if k := s.KindOf(list); k == nil || k.GVK != gvk || k.ListGVK != flock {
		t.Errorf("the kind of the list is %v", k)
	}
	if s.Recognizes(gvk.GroupVersion().WithKind("SheepList")) {
		t.Error("SheepList is known")
	}
	if err := runtime.Register(s, gvk.GroupVersion().WithKind("Flock"), untypedOptions{}); err == nil {
		t.Error("a kind of the list's name was taken")
	}
	if err := runtime.Register(s, gvk.GroupVersion().WithKind("Goose"), untypedOptions{ListKind: "Flock"}); err == nil {
		t.Error("a list of the same name was taken")
	}
	s.Unregister(gvk)
	if s.Recognizes(flock) || s.KindOf(list) != nil {
		t.Error("the list is known without its kind")
	}
}

func TestUntypedSchemaIsForUntypedKinds(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	for name, opts := range map[string]runtime.KindOptions[*typedGadget]{
		"ListKind": {ListKind: "Widgets"},
		"Schema":   {Schema: onlySpec{}},
		"Convert": {Convert: func(in *unstructured.Unstructured, _ schema.GroupVersion) (*unstructured.Unstructured, error) {
			return in, nil
		}},
	} {
		if err := runtime.Register(runtime.NewScheme(), gvk, opts); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUntypedVersionsWithSchemas shows that a conversion to the hub drops nothing, and that a conversion from the hub drops the
// fields that the version does not have.
func TestUntypedVersionsWithSchemas(t *testing.T) {
	s := runtime.NewScheme()
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	for _, version := range []string{"v1", "v2"} {
		gv.Version = version
		registerUntyped(t, s, gv.WithKind("Sheep"), untypedOptions{Schema: onlySpec{}})
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v2", "kind": "Sheep", "wool": "white"}}
	hub, err := s.ToVersion(obj, schema.GroupVersion{Group: "example.com", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	if u := hub.(*unstructured.Unstructured); u.Object["wool"] != "white" || u.GetAPIVersion() != "example.com/v1" {
		t.Errorf("in the hub: %v", u.Object)
	}
	back, err := s.ToVersion(hub, gv)
	if err != nil {
		t.Fatal(err)
	}
	if u := back.(*unstructured.Unstructured); u.Object["wool"] != nil || u.GetAPIVersion() != "example.com/v2" {
		t.Errorf("in v2: %v", u.Object)
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "SheepList"}, Items: []unstructured.Unstructured{*hub.(*unstructured.Unstructured)}}
	listed, err := s.ToVersion(list, gv)
	if err != nil {
		t.Fatal(err)
	}
	if items := listed.(*unstructured.UnstructuredList).Items; len(items) != 1 || items[0].Object["wool"] != nil || items[0].GetAPIVersion() != "example.com/v2" {
		t.Errorf("the list in v2: %v", items)
	}
	s.Default(back)
	if back.(*unstructured.Unstructured).Object["spec"] == nil {
		t.Error("the schema's defaults were not set")
	}
}
