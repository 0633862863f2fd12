package constraint

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
)

// shape is a struct type with the rules at its fields and below them. Each struct type has one shape, so the shape of a type that
// contains itself refers to itself.
type shape struct {
	typ    reflect.Type
	fields []*place

	judged    []*place // the fields that may have errors
	defaulted []*place // the fields in which defaults may be set
}

// place is a position that holds a value: a field, or the elements of a list or map.
type place struct {
	member       // the zero member for an element
	rule   *rule // nil: no rule for this place itself
	nilled bool  // the zero value is null in JSON, though its type is not a pointer

	inner *shape // of a struct, else nil
	elem  *place // of a list or map, else nil
	match match  // of a list: how its elements are identified

	judges, defaults bool // there is a rule or a default here or below
}

// leaf describes the JSON of a type.
type leaf struct {
	opaque bool // see isOpaque
	nilled bool // see nullWhenZero
}

// absent reports whether JSON leaves the field out or has null for it. v may be the zero Value.
func (p *place) absent(v reflect.Value) bool {
	if !v.IsValid() {
		return true
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil()
	case reflect.Slice, reflect.Map:
		return v.IsNil() || p.omitEmpty && v.Len() == 0
	case reflect.Array:
		return p.omitEmpty && v.Len() == 0 || p.omitZero && isZero(v)
	case reflect.Struct:
		return p.omitZero && isZero(v) || p.nilled && v.IsZero()
	}
	return p.omitEmpty && v.IsZero() || p.omitZero && isZero(v)
}

// missing reports whether the field's default must be set: the field is absent, or it is zero and not a pointer.
func (p *place) missing(v reflect.Value) bool {
	if p.absent(v) {
		return true
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.Interface, reflect.Pointer:
		return false
	}
	return v.IsZero()
}

// isZero reports whether the option omitzero leaves out v: by the method IsZero of the type, if it has one.
func isZero(v reflect.Value) bool {
	type zeroer interface{ IsZero() bool }
	if z, ok := v.Interface().(zeroer); ok {
		return z.IsZero()
	}
	if v.CanAddr() {
		if z, ok := v.Addr().Interface().(zeroer); ok {
			return z.IsZero()
		}
	}
	return v.IsZero()
}

// isOpaque reports whether the JSON of a type does not consist of its parts: the type has its own JSON, is a slice of bytes, or
// may hold anything.
func isOpaque(t reflect.Type) bool {
	return t.Kind() == reflect.Interface || isBytes(t) || t == reflect.TypeFor[json.Number]() || jsonfield.Marshals(t)
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// nullWhenZero reports whether the zero value of a struct is null in JSON, as that of metav1.Time is.
func nullWhenZero(t reflect.Type) (null bool) {
	if t.Kind() != reflect.Struct || !jsonfield.Marshals(t) {
		return false
	}
	defer func() {
		if recover() != nil { // a method of another package's type does not accept a zero value
			null = false
		}
	}()
	text, err := json.Marshal(reflect.New(t).Interface())
	return err == nil && string(text) == "null"
}

// keyText returns the text of a map key in paths, which is that of JSON.
func keyText(key reflect.Value) string {
	if key.Kind() == reflect.String {
		return key.String()
	}
	if m, ok := key.Interface().(encoding.TextMarshaler); ok {
		if text, err := m.MarshalText(); err == nil {
			return string(text)
		}
	}
	return strings.TrimSpace(fmt.Sprint(key.Interface()))
}
