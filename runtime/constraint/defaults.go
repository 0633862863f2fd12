package constraint

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	kjson "sigs.k8s.io/json"
)

// filler is the default of a field.
type filler struct {
	json  json.RawMessage
	value reflect.Value // the default of a scalar, without pointers; the zero Value: decode json each time, so that nothing is shared
}

// filler reads the tag default: JSON, or for a string the text itself. The default of a type with its own JSON may be written as
// the text that it is in JSON.
func (r *tagReader) filler(value string) (*filler, error) {
	if r.m.asString {
		return nil, errors.New("the option \",string\" makes the field a string in JSON; take one of the two away")
	}
	quoted, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if r.class == text {
		v := reflect.New(r.typ).Elem()
		v.SetString(value)
		return &filler{quoted, v}, nil
	}
	into, err := decode([]byte(value), r.m.Type)
	if err == nil && value == "null" {
		return nil, errors.New("null is no default; leave the tag out")
	}
	text := []byte(value)
	if err != nil && r.class == opaque && r.typ.Kind() != reflect.Interface {
		if v, errText := decode(quoted, r.m.Type); errText == nil {
			into, text, err = v, quoted, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("it is no JSON of a %v (%w); write the value as in a JSON document", r.m.Type, err)
	}
	f := &filler{json: text}
	if jsonfield.Stringable(r.typ.Kind()) && r.class != opaque {
		f.value = indirect(into)
	}
	return f, nil
}

// decode decodes JSON without unknown fields into a new value of type t.
func decode(text []byte, t reflect.Type) (v reflect.Value, err error) {
	defer func() {
		if p := recover(); p != nil { // a method of the type panicked
			err = fmt.Errorf("reading it panicked: %v", p)
		}
	}()
	to := reflect.New(t)
	strict, err := kjson.UnmarshalStrict(text, to.Interface())
	if err == nil {
		err = errors.Join(strict...)
	}
	return to.Elem(), err
}

// set sets a field to its default.
func (f *filler) set(v reflect.Value) {
	if f.value.IsValid() {
		for v.Kind() == reflect.Pointer {
			v.Set(reflect.New(v.Type().Elem()))
			v = v.Elem()
		}
		v.Set(f.value)
		return
	}
	fresh := reflect.New(v.Type())
	if err := kjson.UnmarshalCaseSensitivePreserveInts(f.json, fresh.Interface()); err == nil { // it was decoded before
		v.Set(fresh.Elem())
	}
}

// defaulter sets the missing fields of an object.
type defaulter struct {
	// A trial checks that nested defaults end: depth is the number of defaults around the present place, and limit is the largest
	// number allowed; 0: no limit.
	depth, limit int
	endless      bool
}

// fields sets the defaults in a struct, and reports whether any was set.
func (d *defaulter) fields(s *shape, v reflect.Value) (set bool) {
	for _, p := range s.defaulted {
		f := p.of(v)
		if p.rule == nil || p.rule.def == nil || !p.missing(f) {
			set = f.IsValid() && d.inside(p, f) || set
			continue
		}
		if f = p.make(v); f.IsValid() && f.CanSet() {
			d.fill(p, f)
			set = true
		}
	}
	return set
}

func (d *defaulter) fill(p *place, v reflect.Value) {
	if d.endless {
		return
	}
	if d.depth++; d.limit > 0 && d.depth > d.limit {
		d.endless = true
		return
	}
	p.rule.def.set(v)
	d.inside(p, v)
	d.depth--
}

// inside sets the defaults inside a value, and reports whether any was set.
func (d *defaulter) inside(p *place, v reflect.Value) (set bool) {
	v = indirect(v)
	switch {
	case !v.IsValid():
	case p.inner != nil && len(p.inner.defaulted) > 0:
		return d.fields(p.inner, v)
	case p.elem == nil || !p.elem.defaults:
	case v.Kind() == reflect.Map:
		return d.entries(p, v)
	default:
		for i := range v.Len() {
			set = d.inside(p.elem, v.Index(i)) || set
		}
	}
	return set
}

// entries sets the defaults inside the values of a map, which cannot be changed in place.
func (d *defaulter) entries(p *place, m reflect.Value) (set bool) {
	for it := m.MapRange(); it.Next(); {
		if it.Value().Kind() == reflect.Pointer {
			set = d.inside(p.elem, it.Value()) || set
			continue
		}
		v := reflect.New(m.Type().Elem()).Elem()
		v.Set(it.Value())
		if d.inside(p.elem, v) {
			m.SetMapIndex(it.Key(), v)
			set = true
		}
	}
	return set
}

// nested limits how deeply defaults may be nested.
const nested = 16
