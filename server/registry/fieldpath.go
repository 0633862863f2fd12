package registry

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fieldPath is the path from a struct to a field inside of it, as field indexes. Pointers on the path are followed. In untyped
// objects it is a path through maps. The zero fieldPath is no path.
type fieldPath struct {
	steps [][]int  // one for each JSON name; nil for untyped objects
	names []string // JSON names
}

// integerPath resolves a dotted JSON path with a leading dot. It returns an error if the path does not lead to an integer.
func integerPath(t reflect.Type, path string) (fieldPath, error) {
	return resolvePath(t, path, "an integer of 32 or 64 bits", func(k reflect.Kind) bool {
		return k == reflect.Int || k == reflect.Int32 || k == reflect.Int64
	})
}

// stringPath is integerPath for strings.
func stringPath(t reflect.Type, path string) (fieldPath, error) {
	return resolvePath(t, path, "a string", func(k reflect.Kind) bool { return k == reflect.String })
}

// hasPath reports whether t has a field at a path.
func hasPath(t reflect.Type, path string) bool {
	_, err := resolvePath(t, path, "", func(reflect.Kind) bool { return true })
	return err == nil
}

func resolvePath(t reflect.Type, path, what string, fits func(reflect.Kind) bool) (fieldPath, error) {
	rest, ok := strings.CutPrefix(path, ".")
	if !ok || rest == "" {
		return fieldPath{}, fmt.Errorf("path %q does not begin with a dot and a field name", path)
	}
	p := fieldPath{names: strings.Split(rest, ".")}
	if isUntyped(t) {
		if slices.Contains(p.names, "") {
			return fieldPath{}, fmt.Errorf("path %q: a name in it is empty", path)
		}
		return p, nil
	}
	for _, name := range p.names {
		index, field := jsonField(t, name)
		if index == nil {
			return fieldPath{}, fmt.Errorf("path %q: %v has no field %q", path, t, name)
		}
		p.steps = append(p.steps, index)
		t = field
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	if !fits(t.Kind()) {
		return fieldPath{}, fmt.Errorf("path %q leads to %v, which is not %s", path, t, what)
	}
	return p, nil
}

// jsonField returns the index and type of the field of t, or of structs embedded in it, with a JSON name.
func jsonField(t reflect.Type, name string) ([]int, reflect.Type) {
	if t.Kind() != reflect.Struct {
		return nil, nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "" && f.Anonymous && f.Type.Kind() == reflect.Struct:
			if index, field := jsonField(f.Type, name); index != nil {
				return append([]int{i}, index...), field
			}
		case f.IsExported() && (tag == name || tag == "" && f.Name == name):
			return []int{i}, f.Type
		}
	}
	return nil, nil
}

// find returns the field in obj, or an invalid value if a pointer on the path is nil. If fill is true, it sets such pointers
// instead.
func (p fieldPath) find(obj runtime.Object, fill bool) reflect.Value {
	v := reflect.ValueOf(obj).Elem()
	for _, index := range p.steps {
		v = v.FieldByIndex(index)
		if v.Kind() != reflect.Pointer {
			continue
		}
		if v.IsNil() && !fill {
			return reflect.Value{}
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	return v
}

// in returns the value at the path in an untyped object, or nil if there is none. It does not use the functions of package
// unstructured, whose errors contain the value as text, however large it is.
func (p fieldPath) in(object map[string]any) any {
	v := any(object)
	for _, name := range p.names {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// integer returns the integer at the path. It returns false if there is none.
func (p fieldPath) integer(obj runtime.Object) (int32, bool) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		n, ok := p.in(u.Object).(int64)
		return int32(min(max(n, math.MinInt32), math.MaxInt32)), ok
	}
	v := p.find(obj, false)
	if len(p.steps) == 0 || !v.IsValid() {
		return 0, false
	}
	return int32(min(max(v.Int(), math.MinInt32), math.MaxInt32)), true
}

// setInteger sets the integer at the path. In an untyped object, it returns an error if a value on the path is not an object.
func (p fieldPath) setInteger(obj runtime.Object, n int32) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return unstructured.SetNestedField(u.Object, int64(n), p.names...)
	}
	p.find(obj, true).SetInt(int64(n))
	return nil
}

// text returns the string at the path, or "" if there is none.
func (p fieldPath) text(obj runtime.Object) string {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		text, _ := p.in(u.Object).(string)
		return text
	}
	if len(p.steps) == 0 {
		return ""
	}
	if v := p.find(obj, false); v.IsValid() {
		return v.String()
	}
	return ""
}
