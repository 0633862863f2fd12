package constraint

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// match describes how the elements of a list are identified in another state of the list. The zero match is for an atomic list:
// its elements are only known if the whole list is the same.
type match struct {
	set    bool
	unsure bool     // keys only identify elements; they need not be unique
	keys   []member // of listType map: the fields that identify elements
}

// matchOf reads the tags listType and listMapKey, or patchMergeKey, of a field. Invalid tags have no effect here: Check of
// package schema, which also reads the markers in comments, returns an error for them.
func matchOf(m *member) match {
	elem, isList := elementOf(m.Type)
	if !isList {
		return match{}
	}
	listType := m.Tag.Get("listType")
	switch key, merges := m.Tag.Lookup("patchMergeKey"); {
	case listType == "set":
		return match{set: isScalar(elem)}
	case listType == "map":
		return match{keys: keyFields(elem, strings.Split(m.Tag.Get("listMapKey"), ","))}
	case listType == "" && merges:
		return match{keys: keyFields(elem, []string{key}), unsure: true}
	}
	return match{}
}

// elementOf returns the type of a list's elements, without pointers.
func elementOf(t reflect.Type) (reflect.Type, bool) {
	t, ok := dereference(t)
	if !ok || isOpaque(t) || t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
		return nil, false
	}
	return dereference(t.Elem())
}

func isScalar(t reflect.Type) bool {
	return t != nil && !isOpaque(t) && jsonfield.Stringable(t.Kind())
}

// keyFields returns the fields of a struct with the given names, or nil if it does not have all of them.
func keyFields(elem reflect.Type, names []string) []member {
	if elem == nil || elem.Kind() != reflect.Struct || isOpaque(elem) {
		return nil
	}
	members := membersOf(elem, nil)
	var out []member
	for _, name := range names {
		i := slices.IndexFunc(members, func(m member) bool { return m.name == strings.TrimSpace(name) })
		if i < 0 {
			return nil
		}
		if t, _ := dereference(members[i].Type); !isScalar(t) {
			return nil
		}
		out = append(out, members[i])
	}
	return out
}

// tells reports whether elements can be identified.
func (m *match) tells() bool { return m.set || len(m.keys) > 0 }

// name returns the identity of an element, and false for null, which has none.
func (m *match) name(elem reflect.Value) (string, bool) {
	elem = indirect(elem)
	if !elem.IsValid() {
		return "", false
	}
	if m.set {
		return scalarText(elem), true
	}
	if len(m.keys) == 1 {
		return scalarText(indirect(m.keys[0].of(elem))), true
	}
	var b strings.Builder
	for i := range m.keys {
		b.WriteString(strconv.Quote(scalarText(indirect(m.keys[i].of(elem)))))
	}
	return b.String(), true
}

// scalarText returns the text of a scalar. An absent scalar has the text of the empty string.
func scalarText(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Float32, reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.Invalid:
		return ""
	}
	if v.CanInt() {
		return strconv.FormatInt(v.Int(), 10)
	}
	return strconv.FormatUint(v.Uint(), 10)
}

// unique returns the check that no two elements of a list have the same name, or nil if they need not be unique.
func (m *match) unique() check {
	if !m.tells() || m.unsure {
		return nil
	}
	return func(list reflect.Value) complaint {
		if list.Len() < 2 {
			return nil
		}
		seen := make(map[string]struct{}, list.Len())
		var again []int
		for i := range list.Len() {
			name, ok := m.name(list.Index(i))
			if _, dup := seen[name]; ok && dup && len(again) < most {
				again = append(again, i)
			}
			if ok {
				seen[name] = struct{}{}
			}
		}
		if again == nil {
			return nil
		}
		return func(at *field.Path) field.ErrorList {
			var errs field.ErrorList
			for _, i := range again {
				errs = append(errs, field.Duplicate(at.Index(i), m.shown(indirect(list.Index(i)))))
			}
			return errs
		}
	}
}

// shown returns the value that an error shows for an element: the element, or its keys.
func (m *match) shown(elem reflect.Value) any {
	if m.set {
		return plain(elem)
	}
	keys := map[string]any{}
	for i := range m.keys {
		if v := indirect(m.keys[i].of(elem)); v.IsValid() {
			keys[m.keys[i].name] = plain(v)
		}
	}
	return keys
}

// plain returns a scalar as errors show it: without its named type. Other values are returned as they are.
func plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Invalid:
		return nil
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Float32:
		return float32(v.Float())
	case reflect.Float64:
		return v.Float()
	case reflect.Pointer:
		return plain(v.Elem())
	}
	switch {
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return v.Uint()
	}
	return v.Interface()
}

// same reports whether two values of one type are the same in JSON. nil and empty lists are the same, and so are nil and empty
// maps. Values of types with their own JSON are the same if their JSON is.
func same(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		a, b = a.Elem(), b.Elem()
		return a.Type() == b.Type() && same(a, b)
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for it := a.MapRange(); it.Next(); {
			if other := b.MapIndex(it.Key()); !other.IsValid() || !same(it.Value(), other) {
				return false
			}
		}
		return true
	case reflect.Struct:
		return sameStruct(a, b)
	case reflect.Chan, reflect.Func, reflect.UnsafePointer: // these have no JSON
		return true
	}
	return a.Equal(b)
}

func sameStruct(a, b reflect.Value) bool {
	if jsonfield.Marshals(a.Type()) && a.CanInterface() {
		if reflect.DeepEqual(a.Interface(), b.Interface()) {
			return true
		}
		x, errA := json.Marshal(a.Interface())
		y, errB := json.Marshal(b.Interface())
		return errA == nil && errB == nil && string(x) == string(y)
	}
	for i := range a.NumField() {
		f := a.Type().Field(i)
		inner, _ := dereference(f.Type)
		if (f.IsExported() || f.Anonymous && inner.Kind() == reflect.Struct) && !same(a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}

// one returns the complaint that consists of one error.
func one(make func(at *field.Path) *field.Error, origin string) complaint {
	return func(at *field.Path) field.ErrorList { return field.ErrorList{make(at).WithOrigin(origin)} }
}

// invalid returns the complaint that a value is not as it should be, with the text of kube-apiserver for custom resources.
func invalid(v any, origin, should string) complaint {
	return one(func(at *field.Path) *field.Error {
		return field.Invalid(at, v, fmt.Sprintf("%s in body should %s", at, should))
	}, origin)
}
