package runtime

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ObjectSchema says what the objects of a kind without a Go type are like: see [KindOptions].Schema. Its methods are called
// concurrently, with objects that belong to the call and have the values of decoded JSON: map[string]any, []any, string,
// bool, int64, float64 or nil. Nobody changes a schema; a kind whose objects become others is registered anew.
//
// A schema that also says how OpenAPI describes the objects and how they are merged implements the Describer of package
// schema.
type ObjectSchema interface {
	// Conform brings an object into shape, in place: what a Go type does when JSON is decoded into it. Fields that are not
	// specified go, and the paths of at most report of them come back ("spec.sise"); metadata becomes what a
	// metav1.ObjectMeta holds. Metadata of a wrong type is an error, or when the object is one that was stored, dropped.
	Conform(object map[string]any, stored bool, report int) (unknown []string, err error)
	// SetDefaults sets defaults in place. It is idempotent.
	SetDefaults(object map[string]any)
}

// ConvertUntyped makes of an object of a kind without a Go type one of the version to: see [KindOptions].Convert. in belongs
// to the call, and may be what is returned.
type ConvertUntyped func(in *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error)

// Untyped reports whether the kind has no Go type: its objects are *unstructured.Unstructured, and its lists
// *unstructured.UnstructuredList. An object or a list of it is recognised by its kind and apiVersion.
func (k *Kind) Untyped() bool { return k.untyped }

// HasConvert reports whether the kind has a function that makes objects of one version those of another: see
// [KindOptions].Convert.
func (k *Kind) HasConvert() bool { return k.convert != nil }

func newUntyped(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind}}
}

func newUntypedList(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind},
		Items:  []unstructured.Unstructured{},
	}
}

func isUntyped(obj Object) bool {
	switch obj.(type) {
	case *unstructured.Unstructured, *unstructured.UnstructuredList:
		return true
	}
	return false
}

// untypedKind returns the kind gvk if it is registered without a Go type, or nil.
func (s *Scheme) untypedKind(gvk schema.GroupVersionKind) *Kind {
	if k := s.Lookup(gvk); k != nil && k.untyped {
		return k
	}
	return nil
}

// untypedToVersion returns a copy of an untyped object or list that is of the kind to. Items keep their kind, as they do
// in the lists of a server. What the objects of a version other than the hub's do not have is dropped there; the hub takes
// everything, so that who judges a request there sees it whole.
func (s *Scheme) untypedToVersion(obj Object, from, to *Kind) (Object, error) {
	out := obj.DeepCopyObject()
	switch out := out.(type) {
	case *unstructured.Unstructured:
		return s.untypedObject(out, from, to)
	case *unstructured.UnstructuredList:
		out.SetAPIVersion(to.GVK.GroupVersion().String())
		for i := range out.Items {
			item, err := s.untypedObject(&out.Items[i], from, to)
			if err != nil {
				return nil, err
			}
			out.Items[i] = *item
		}
	}
	return out, nil
}

// untypedObject converts one object, which belongs to it. Errors are ConversionErrors.
func (s *Scheme) untypedObject(in *unstructured.Unstructured, from, to *Kind) (*unstructured.Unstructured, error) {
	out := in
	fail := func(cause error) error {
		return &ConversionError{Kind: to.GVK.GroupKind(), From: from.GVK.GroupVersion(), To: to.GVK.GroupVersion(), Err: cause}
	}
	if from.convert != nil {
		var err error
		if out, err = from.convertUntyped(in, to); err != nil {
			return nil, fail(err)
		}
	}
	out.SetAPIVersion(to.GVK.GroupVersion().String())
	if hub, _ := s.Hub(to.GVK.GroupKind()); to.Schema == nil || hub == to.GVK {
		return out, nil
	}
	if _, err := to.Schema.Conform(out.Object, false, 0); err != nil {
		return nil, fail(err)
	}
	return out, nil
}

// convertUntyped calls the program's conversion and sees to what it may not change.
func (k *Kind) convertUntyped(in *unstructured.Unstructured, to *Kind) (out *unstructured.Unstructured, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("the conversion panicked: %v", p)
		}
	}()
	before, _ := in.Object["metadata"].(map[string]any)
	before = apiruntime.DeepCopyJSON(before)
	if out, err = k.convert(in, to.GVK.GroupVersion()); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, errors.New("the conversion returned neither an object nor an error")
	}
	if err := Normalize(out); err != nil {
		return nil, err
	}
	if got := out.GetKind(); got != to.GVK.Kind {
		return nil, fmt.Errorf("the conversion returned the kind %q, not %q", got, to.GVK.Kind)
	}
	after, ok := out.Object["metadata"].(map[string]any)
	if !ok && before != nil {
		return nil, errors.New("the conversion returned an object without metadata")
	}
	for _, name := range []string{"name", "namespace", "uid"} {
		if before[name] != after[name] {
			return nil, fmt.Errorf("the conversion changed metadata.%s from %v to %v", name, before[name], after[name])
		}
	}
	for _, name := range []string{"labels", "annotations"} {
		delete(before, name)
		if v, ok := after[name]; ok {
			before[name] = v
		}
	}
	if before != nil {
		out.Object["metadata"] = before
	}
	return out, nil
}

// Normalize gives an untyped object the values that decoded JSON has (string, bool, int64, float64, nil, []any and
// map[string]any) where a program has put others, such as an int or a struct: apimachinery's deep copy panics at those.
// Values that have no JSON are an error. What the object has shared with others is replaced, not changed; one that needs
// nothing, or has a Go type, is left as it is.
func Normalize(obj Object) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u == nil || isDecoded(u.Object) {
		return nil
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("a value of the untyped object has no JSON: %w", err)
	}
	var members map[string]any
	if err := utiljson.Unmarshal(text, &members); err != nil {
		return fmt.Errorf("the untyped object: %w", err)
	}
	u.Object = members
	return nil
}

// isDecoded reports whether a value is one that decoding JSON makes.
func isDecoded(v any) bool {
	switch v := v.(type) {
	case nil, string, bool, int64, float64:
		return true
	case []any:
		for _, item := range v {
			if !isDecoded(item) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, member := range v {
			if !isDecoded(member) {
				return false
			}
		}
		return true
	}
	return false
}
