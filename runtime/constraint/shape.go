package constraint

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// shape is a struct type with the rules at its fields and below them. There is one for each struct type, so a type
// that contains itself has a shape that leads to itself.
type shape struct {
	typ    reflect.Type
	fields []*place

	judged    []*place // those of fields where something may be wrong
	defaulted []*place // those where something may be set
}

// place is where a value may stand: a field, or an element of a list or map.
type place struct {
	member       // the zero member for an element
	rule   *rule // nil: none at this very place
	nilled bool  // the zero value is null in JSON, though it is no pointer

	inner *shape // of a struct, else nil
	elem  *place // of a list or map, else nil
	match match  // of a list: how its elements are told from each other

	judges, defaults bool // here or below
}

// leaf says how a type looks from outside.
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

// missing reports whether the field's default is to be set: it is absent, or no pointer and zero.
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

// isZero is what the option omitzero asks: the method IsZero of the type, if it has one.
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

// isOpaque tells whether the JSON of a type is not that of its parts: it says itself what it is, or is a text of
// bytes, or may hold anything.
func isOpaque(t reflect.Type) bool {
	return t.Kind() == reflect.Interface || isBytes(t) || t == reflect.TypeFor[json.Number]() || marshals(t)
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

func marshals(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// nullWhenZero tells whether the zero value of a struct is null in JSON, as that of metav1.Time is.
func nullWhenZero(t reflect.Type) (null bool) {
	if t.Kind() != reflect.Struct || !marshals(t) {
		return false
	}
	defer func() {
		if recover() != nil { // a method of somebody else's that does not expect a zero value
			null = false
		}
	}()
	text, err := json.Marshal(reflect.New(t).Interface())
	return err == nil && string(text) == "null"
}

// keyText is how a path names a map key: as JSON does.
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
