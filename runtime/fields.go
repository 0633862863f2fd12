package runtime

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ConvertFieldLabel implements apimachinery's ObjectConvertor: it says whether a field selector may name label.
// metadata.name and metadata.namespace are always known, and so are the selectable fields of the kind.
func (s *Scheme) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	k := s.Lookup(gvk)
	switch {
	case k == nil || len(k.Fields) == 0:
		return apiruntime.DefaultMetaV1FieldSelectorConversion(label, value)
	case label == "metadata.name" || label == "metadata.namespace" || slices.Contains(k.Fields, label):
		return label, value, nil
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// checkSelectable refuses a path that does not lead to a scalar of t.
func checkSelectable(t reflect.Type, path string) error {
	switch path {
	case "metadata.name", "metadata.namespace":
		return fmt.Errorf("selectable field %q: it is always selectable; leave it out", path)
	case "metadata.resourceVersion":
		return fmt.Errorf("selectable field %q: it is not stored with the object", path)
	}
	at := t
	for name := range strings.SplitSeq(path, ".") {
		next, ok := jsonField(at, name)
		if !ok {
			return fmt.Errorf("selectable field %q: %v has no JSON field %q; write the dotted path of JSON names, such as \"spec.color\"", path, at, name)
		}
		at = next
	}
	switch at.Kind() {
	case reflect.String, reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return nil
	}
	return fmt.Errorf("selectable field %q: it is of type %v; only strings, booleans and integers can be selected", path, at)
}

// jsonField returns the type, without its pointer, of the field of t that JSON calls name.
func jsonField(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	var inlined []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		tag := f.Tag.Get("json")
		key, _, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && key == "" && ft.Kind() == reflect.Struct:
			inlined = append(inlined, ft)
		case key == name || key == "" && f.Name == name:
			return ft, true
		}
	}
	for _, ft := range inlined {
		if found, ok := jsonField(ft, name); ok {
			return found, true
		}
	}
	return nil, false
}
