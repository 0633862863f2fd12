// Package equal compares values as [reflect.DeepEqual] does, without its memory. DeepEqual notes every pair of pointers, maps
// and slices, so that it ends for values that contain themselves, and copies both values of every entry of a map. API objects do
// not contain themselves, and the largest of them have 100,000 slices and maps with structs of 700 bytes.
package equal

import "reflect"

// Values reports whether a and b are equal in the sense of [reflect.DeepEqual]. Neither may contain itself.
func Values(a, b any) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Type() == y.Type() && same(x, y)
}

// same compares two values of the same type.
func same(x, y reflect.Value) bool {
	if !x.IsValid() || !y.IsValid() {
		return x.IsValid() == y.IsValid()
	}
	if x.Type() != y.Type() {
		return false
	}
	switch x.Kind() {
	case reflect.Pointer:
		return x.UnsafePointer() == y.UnsafePointer() || same(x.Elem(), y.Elem())
	case reflect.Interface:
		return same(x.Elem(), y.Elem())
	case reflect.Struct:
		for i := range x.NumField() {
			if !same(x.Field(i), y.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		switch {
		case x.IsNil() != y.IsNil(), x.Len() != y.Len():
			return false
		case x.UnsafePointer() == y.UnsafePointer():
			return true
		}
		return sameElements(x, y)
	case reflect.Array:
		return sameElements(x, y)
	case reflect.Map:
		switch {
		case x.IsNil() != y.IsNil(), x.Len() != y.Len():
			return false
		case x.UnsafePointer() == y.UnsafePointer():
			return true
		}
		return sameEntries(x, y)
	case reflect.Func:
		return x.IsNil() && y.IsNil()
	default:
		return x.Equal(y)
	}
}

func sameElements(x, y reflect.Value) bool {
	for i := range x.Len() {
		if !same(x.Index(i), y.Index(i)) {
			return false
		}
	}
	return true
}

// sameEntries compares two maps of the same length. All values of x are copied to the same memory, except those of an unexported
// field, which cannot be copied.
func sameEntries(x, y reflect.Value) bool {
	value, copied := reflect.New(x.Type().Elem()).Elem(), x.CanInterface()
	for entries := x.MapRange(); entries.Next(); {
		other := y.MapIndex(entries.Key())
		if !other.IsValid() {
			return false
		}
		if copied {
			value.SetIterValue(entries)
		} else {
			value = entries.Value()
		}
		if !same(value, other) {
			return false
		}
	}
	return true
}
