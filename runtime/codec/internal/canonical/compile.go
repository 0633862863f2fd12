package canonical

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	marshaler       = reflect.TypeFor[json.Marshaler]()
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	zeroer          = reflect.TypeFor[interface{ IsZero() bool }]()
)

// compiler makes the rules of types.
type compiler struct {
	opts      Options
	objects   map[place]*object // including those that are incomplete, for types that contain themselves
	within    []reflect.Type    // the types that contain the present type, without a struct between them
	defaulted jsonfield.Seeker
}

// place is where a type is used.
type place struct {
	typ         reflect.Type
	addressable bool
}

// hasDefault reports whether a field has a default.
func hasDefault(f reflect.StructField) bool {
	_, ok := f.Tag.Lookup("default")
	return ok
}

// hasDefaults reports whether values of the type may get defaults.
func (c *compiler) hasDefaults(t reflect.Type) bool { return c.opts.Defaults && c.defaulted.Finds(t) }

// whole returns the rule of a type whose values are decoded and encoded.
func (c *compiler) whole(t reflect.Type, addressable bool) rule {
	if c.hasDefaults(t) {
		return never{}
	}
	return &whole{t, addressable}
}

// rule returns the rule of a type.
func (c *compiler) rule(t reflect.Type, addressable bool) rule {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return moment{}
	case reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[runtime.RawExtension]():
		return &verbatim{c.whole(t, addressable)}
	case reflect.TypeFor[intstr.IntOrString]():
		return intOrString{}
	}
	if hasMethods(t) || t == reflect.TypeFor[json.Number]() {
		return c.whole(t, addressable)
	}
	switch t.Kind() {
	case reflect.Bool:
		return boolean{}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return integer{bits: t.Bits()}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return integer{bits: t.Bits(), unsigned: true}
	case reflect.String:
		return str{}
	case reflect.Struct:
		return c.object(t, addressable)
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return c.container(t, addressable)
	}
	return c.whole(t, addressable)
}

// hasMethods reports whether a type has, or may have, its own methods for JSON.
func hasMethods(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		return false // its methods are those of its element, which has a rule of its own
	}
	for _, method := range []reflect.Type{marshaler, unmarshaler, textMarshaler, textUnmarshaler} {
		if reflect.PointerTo(t).Implements(method) {
			return true
		}
	}
	return false
}

// container returns the rule of a pointer, slice or map.
func (c *compiler) container(t reflect.Type, addressable bool) rule {
	for _, outer := range c.within {
		if outer == t {
			return c.whole(t, addressable)
		}
	}
	c.within = append(c.within, t)
	defer func() { c.within = c.within[:len(c.within)-1] }()
	switch t.Kind() {
	case reflect.Pointer:
		return &pointer{c.rule(t.Elem(), true)}
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return &list{c.rule(t.Elem(), true)}
		}
		if !hasMethods(t.Elem()) {
			return base64Bytes{}
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !hasMethods(t.Key()) && t.Key() != reflect.TypeFor[json.Number]() {
			return &dict{c.rule(t.Elem(), false)}
		}
	}
	return c.whole(t, addressable)
}

// object returns the rule of a struct.
func (c *compiler) object(t reflect.Type, addressable bool) rule {
	at := place{t, addressable}
	if o, ok := c.objects[at]; ok {
		return o
	}
	fields := jsonfield.Of(t, nil)
	for _, f := range fields {
		if !regular(t, f) {
			return c.whole(t, addressable)
		}
	}
	o := new(object)
	c.objects[at] = o
	within := c.within
	c.within = nil
	defer func() { c.within = within }()
	for _, f := range fields {
		o.members = append(o.members, c.member(f, addressable))
	}
	return o
}

// member returns the description of a regular field.
func (c *compiler) member(f jsonfield.Field, addressable bool) member {
	t := f.Go.Type
	m := member{head: `"` + f.Name + `":`, value: c.rule(t, addressable), defaulted: c.opts.Defaults && hasDefault(f.Go)}
	none := factsOf(reflect.New(t).Elem())
	if f.OmitEmpty {
		m.leaves |= empty
	}
	if f.OmitZero {
		m.leaves |= void
		if t != reflect.TypeFor[metav1.Time]() && (t.Implements(zeroer) || reflect.PointerTo(t).Implements(zeroer)) {
			m.value = c.whole(t, addressable) // the method of the field decides about its facts
		}
	}
	// A value that is not in the text is zero and may then get a default; if it is a struct, so may its fields.
	m.optional = none&m.leaves != 0 && !m.defaulted && (t.Kind() != reflect.Struct || !c.hasDefaults(t))
	return m
}

// regular reports whether the JSON of a field is that of its value, under the field's name.
func regular(t reflect.Type, f jsonfield.Field) bool {
	if f.AsString || strings.Trim(f.Name, nameBytes) != "" {
		return false
	}
	for _, i := range f.At[:len(f.At)-1] { // embedded structs
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			return false
		}
	}
	return true
}

// nameBytes are the characters of names that are encoded without escapes.
const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.$/:"

// Has reports whether text is certainly canonical: it must have no white space, not even around it. It returns false for a nil
// Form.
func (f *Form) Has(text []byte) (sure bool) {
	if f == nil {
		return false
	}
	defer func() {
		if recover() != nil {
			sure = false // a method of a type panicked; decoding will show the error
		}
	}()
	r := reader{text: text}
	end, _ := f.top.match(&r, 0)
	return end == len(text)
}

// Of returns the form of a struct type, or nil if its values must be decoded in any case. Of calls the IsZero methods of fields;
// if one panics, it returns nil.
func Of(t reflect.Type, o Options) (f *Form) {
	defer func() {
		if recover() != nil {
			f = nil
		}
	}()
	if t.Kind() != reflect.Struct {
		return nil
	}
	c := &compiler{opts: o, objects: map[place]*object{}}
	c.defaulted.Match = hasDefault
	top, ok := c.rule(t, true).(*object)
	if !ok {
		return nil
	}
	if jsonfield.Void(t) != "" {
		last := &top.members[len(top.members)-1]
		last.leaves |= void
		last.optional = true
	}
	return &Form{top}
}
