package conversion

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
)

// shape describes the JSON of a Go type. A nil shape is that of any value. A shape is immutable.
type shape struct {
	kind   reflect.Kind      // Struct, Slice or Map
	fields map[string]*shape // of a struct
	elem   *shape            // of a list or map
	keys   []string          // of a list: the JSON names of the fields that identify its items
}

// shapeOf returns the shape of a type.
func shapeOf(t reflect.Type) *shape { return shapes{}.of(t, "", nil) }

// shapes has the shapes of struct types.
type shapes map[reflect.Type]*shape

// of returns the shape of a field with a tag. within has the lists and maps that contain it, without a struct between them.
func (all shapes) of(t reflect.Type, tag reflect.StructTag, within []reflect.Type) *shape {
	t = jsonfield.Dereference(t)
	if s, known := all[t]; known {
		return s
	}
	if t.Kind() == reflect.Interface || jsonfield.Marshals(t) || slices.Contains(within, t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		s := &shape{kind: reflect.Struct, fields: map[string]*shape{}}
		all[t] = s
		for _, f := range jsonfield.Of(t, nil) {
			s.fields[f.Name] = all.of(f.Go.Type, f.Go.Tag, nil)
		}
		return s
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return nil
		}
		return &shape{kind: reflect.Slice, elem: all.of(t.Elem(), "", append(within, t)), keys: keysOf(tag)}
	case reflect.Map:
		return &shape{kind: reflect.Map, elem: all.of(t.Elem(), "", append(within, t))}
	}
	return nil
}

// keysOf returns the names of the fields that identify the items of a list, by the tags of the list.
func keysOf(tag reflect.StructTag) []string {
	if tag.Get("listType") == "map" {
		return strings.Split(tag.Get("listMapKey"), ",")
	}
	if key := tag.Get("patchMergeKey"); key != "" {
		return []string{key}
	}
	return nil
}

func (s *shape) isStruct() bool { return s != nil && s.kind == reflect.Struct }

// member returns the shape of a member of an object.
func (s *shape) member(name string) *shape {
	switch {
	case s == nil:
		return nil
	case s.kind == reflect.Struct:
		return s.fields[name]
	}
	return s.elem
}

// element returns the shape of an item of a list.
func (s *shape) element() *shape {
	if s == nil {
		return nil
	}
	return s.elem
}

// empty reports whether a value is absent, or is an empty list or map: these are the same in an object.
func (s *shape) empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return s != nil && s.kind == reflect.Slice && len(v) == 0
	case map[string]any:
		return s != nil && s.kind == reflect.Map && len(v) == 0
	}
	return false
}

// keyOf returns the hash of the keys of an item, or "" if it does not have all of them.
func (s *shape) keyOf(item any) string {
	object, ok := item.(map[string]any)
	if !ok || s == nil || len(s.keys) == 0 {
		return ""
	}
	values := make([]any, len(s.keys))
	for i, key := range s.keys {
		if values[i] = object[key]; values[i] == nil {
			return ""
		}
	}
	return (*shape)(nil).hash(values)
}

// hash returns a hash of a value, or "" if it is absent or empty.
func (s *shape) hash(v any) string {
	if s.empty(v) {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	const enough = 8 // bytes; a client that finds two values with one hash changes only its own object
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:enough])
}
