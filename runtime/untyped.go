package runtime

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Untyped reports whether the kind has no Go type: its objects are *unstructured.Unstructured, and its lists
// *unstructured.UnstructuredList. An object or a list of it is recognised by its kind and apiVersion.
func (k *Kind) Untyped() bool { return k.untyped }

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

// itemKind is the kind of the items of a list of the kind gvk; one that is no list's has the name "".
func itemKind(gvk schema.GroupVersionKind) schema.GroupVersionKind {
	name, isList := strings.CutSuffix(gvk.Kind, "List")
	if !isList {
		name = ""
	}
	gvk.Kind = name
	return gvk
}

// untypedToVersion returns a copy of an untyped object or list that is of the kind to. Items keep their kind, as they do
// in the lists of a server.
func untypedToVersion(obj Object, to *Kind) Object {
	out := obj.DeepCopyObject()
	apiVersion := to.GVK.GroupVersion().String()
	switch out := out.(type) {
	case *unstructured.Unstructured:
		out.SetAPIVersion(apiVersion)
	case *unstructured.UnstructuredList:
		out.SetAPIVersion(apiVersion)
		for i := range out.Items {
			out.Items[i].SetAPIVersion(apiVersion)
		}
	}
	return out
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
