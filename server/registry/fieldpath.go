package registry

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
)

// fieldPath leads from a struct to a field inside it, by field indexes; pointers on the way are followed. The
// zero fieldPath leads nowhere.
type fieldPath struct {
	steps [][]int // one a JSON name
}

// integerPath resolves a dotted JSON path with a leading dot that must lead to an integer.
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
	var p fieldPath
	for _, name := range strings.Split(rest, ".") {
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

// find returns the field in obj, or an invalid value when a pointer on the way is nil. With fill, such pointers
// are set instead.
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

// integer reads an integer; false says that there is none.
func (p fieldPath) integer(obj runtime.Object) (int32, bool) {
	v := p.find(obj, false)
	if len(p.steps) == 0 || !v.IsValid() {
		return 0, false
	}
	return int32(min(max(v.Int(), math.MinInt32), math.MaxInt32)), true
}

func (p fieldPath) setInteger(obj runtime.Object, n int32) {
	p.find(obj, true).SetInt(int64(n))
}

// text reads a string; "" when there is none.
func (p fieldPath) text(obj runtime.Object) string {
	if len(p.steps) == 0 {
		return ""
	}
	if v := p.find(obj, false); v.IsValid() {
		return v.String()
	}
	return ""
}
