package runtime

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ConvertFieldLabel implements apimachinery's ObjectConvertor: it returns the name that the hub has for the field label, or an
// error if a field selector may not name label. metadata.name and metadata.namespace are always selectable, and so are the
// selectable fields of the kind.
func (s *Scheme) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	k := s.Lookup(gvk)
	switch {
	case k == nil || len(k.Fields) == 0 && !k.untyped: // the same answer as for custom resources
		return apiruntime.DefaultMetaV1FieldSelectorConversion(label, value)
	case label == "metadata.name" || label == "metadata.namespace":
		return label, value, nil
	case slices.Contains(k.Fields, label):
		return k.hubField(label), value, nil
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// hubField returns the name that the hub has for a selectable field.
func (k *Kind) hubField(field string) string {
	if hub, ok := k.Renamed[field]; ok {
		return hub
	}
	return field
}

// FieldPaths returns the paths of the hub's selectable fields in the other versions of the kind, by apiVersion and by field. A
// field that has the same path in a version as in the hub is left out. The path "" means that the version has no field which is
// known to hold the value: the object must be converted to find it. For the hub, the result has the fields of
// [KindOptions].SelectableFrom, with their paths separated by "|"; the value is at the first of these paths that leads to a
// non-empty value. The result is nil if it would be empty.
func (s *Scheme) FieldPaths(gk schema.GroupKind) map[string]map[string]string {
	gvk, ok := s.Hub(gk)
	if !ok {
		return nil
	}
	hub := s.Lookup(gvk)
	var out map[string]map[string]string
	for _, k := range s.Versions(gk) {
		for _, field := range hub.Fields {
			path := k.pathOf(hub, field)
			if path == field {
				continue
			}
			version := k.GVK.GroupVersion().String()
			if out == nil {
				out = map[string]map[string]string{}
			}
			if out[version] == nil {
				out[version] = map[string]string{}
			}
			out[version][field] = path
		}
	}
	return out
}

// pathOf returns the path that a selectable field of the hub has in the version k, or "" if the version does not have the field.
func (k *Kind) pathOf(hub *Kind, field string) string {
	if k == hub {
		if paths, ok := k.from[field]; ok {
			return strings.Join(paths, "|")
		}
		return field
	}
	for path, renamed := range k.Renamed {
		if renamed == field {
			return path
		}
	}
	if _, other := k.Renamed[field]; other {
		return ""
	}
	ours, err := k.selectableType(field)
	theirs, _ := hub.selectableType(field)
	if err != nil || ours != theirs {
		return ""
	}
	return field
}

// selectable returns the names of all selectable fields: fields, and the keys of renamed and from.
func selectable(fields []string, renamed map[string]string, from map[string][]string) []string {
	out := slices.Clone(fields)
	for _, path := range slices.Concat(slices.Sorted(maps.Keys(renamed)), slices.Sorted(maps.Keys(from))) {
		if !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out
}

// checkFields returns an error for a selectable field that the kind does not have, and for two that are one field of the hub.
func checkFields(k *Kind) error {
	for i, path := range k.Fields {
		if paths, ok := k.from[path]; ok {
			if err := checkFrom(k, path, paths); err != nil {
				return err
			}
			continue
		}
		if _, err := k.selectableType(path); err != nil {
			return err
		}
		for _, other := range k.Fields[:i] {
			if other != path && k.hubField(other) == k.hubField(path) {
				return fmt.Errorf("selectable fields %q and %q are both the hub's %q; remove one", other, path, k.hubField(path))
			}
		}
	}
	return nil
}

// checkFrom returns an error for a field of SelectableFrom whose paths are not string fields of the kind.
func checkFrom(k *Kind, field string, paths []string) error {
	if _, renamed := k.Renamed[field]; renamed || len(paths) == 0 || field == "metadata.name" || field == "metadata.namespace" {
		return fmt.Errorf("SelectableFrom %q: want the paths of a field of its own, which is not renamed", field)
	}
	for _, path := range paths {
		is, err := k.selectableType(path)
		if err != nil {
			return fmt.Errorf("SelectableFrom %q: %w", field, err)
		}
		if is != aString {
			return fmt.Errorf("SelectableFrom %q: %q is %s; only strings can be empty, so that the next is looked at", field, path, is)
		}
	}
	return nil
}

// checkRenamed returns an error if the selectable fields of version k do not fit those of its hub.
func checkRenamed(k, hub *Kind) error {
	if len(hub.Renamed) > 0 {
		return fmt.Errorf("%s is the hub and has RenamedFields; only the other versions have fields with another name", hub.GVK)
	}
	if len(k.from) > 0 {
		return fmt.Errorf("%s has SelectableFrom, which only the hub %s may have; its fields can be selected by in other versions if they rename them", k.GVK, hub.GVK)
	}
	for _, path := range k.Fields {
		field := k.hubField(path)
		_, renamed := k.Renamed[path]
		if renamed && !slices.Contains(hub.Fields, field) {
			return fmt.Errorf("renamed field %q: %q is no selectable field of the hub %s; add it to the hub's SelectableFields, or correct it", path, field, hub.GVK)
		}
		ours, _ := k.selectableType(path) // checked by Register
		if theirs, err := hub.selectableType(field); err == nil && ours != theirs {
			return fmt.Errorf("selectable field %q is %s in %s, and %q is %s in the hub %s: a selector could not mean the same in both; remove one of them from the selectable fields",
				path, ours, k.GVK, field, theirs, hub.GVK)
		}
	}
	return nil
}

const aString = "a string"

// selectableType is the function selectableType for a field of the kind. A field of a kind without a Go type is a string, unless
// it is a field that all objects have.
func (k *Kind) selectableType(path string) (string, error) {
	if !k.untyped {
		return selectableType(k.Type, path)
	}
	switch first, _, _ := strings.Cut(path, "."); first {
	case "apiVersion", "kind", "metadata":
		return selectableType(reflect.TypeFor[metav1.PartialObjectMetadata](), path)
	}
	for name := range strings.SplitSeq(path, ".") {
		if name == "" {
			return "", fmt.Errorf("selectable field %q: a name in it is empty; write the dotted path of JSON names, such as \"spec.color\"", path)
		}
	}
	return aString, nil
}

// selectableType returns the type of the field of t at a path: "a string", "a boolean" or "an integer". It returns an error if
// the path does not lead to a field of such a type.
func selectableType(t reflect.Type, path string) (string, error) {
	switch path {
	case "metadata.name", "metadata.namespace":
		return "", fmt.Errorf("selectable field %q: it is always selectable; leave it out", path)
	case "metadata.resourceVersion":
		return "", fmt.Errorf("selectable field %q: it is not stored with the object", path)
	}
	at := t
	for name := range strings.SplitSeq(path, ".") {
		next, ok := jsonField(at, name)
		if !ok {
			return "", fmt.Errorf("selectable field %q: %v has no JSON field %q; write the dotted path of JSON names, such as \"spec.color\"", path, at, name)
		}
		at = next
	}
	switch at.Kind() {
	case reflect.String:
		return aString, nil
	case reflect.Bool:
		return "a boolean", nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer", nil
	}
	return "", fmt.Errorf("selectable field %q: it is of type %v; only strings, booleans and integers can be selected", path, at)
}

// jsonField returns the type, without its pointer, of the field of t whose JSON name is name.
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
