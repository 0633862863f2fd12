package constraint

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
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

// compiler makes shapes. Those of a type compiled before are in use, and do not change any more.
type compiler struct {
	shapes   map[reflect.Type]*shape
	leaves   map[reflect.Type]leaf
	order    []*shape // those that are new, in the order in which they were met
	problems []error

	tags jsonfield.Seeker // of this package
}

// compile returns the shape of t. With an error or a panic nothing of what is new is kept.
func (c *compiler) compile(t reflect.Type) (*shape, error) {
	if c.shapes == nil {
		c.shapes, c.leaves = map[reflect.Type]*shape{}, map[reflect.Type]leaf{}
		c.tags.Match = tagged
	}
	if !c.tags.Finds(t) {
		return &shape{typ: t}, nil
	}
	sound := false
	defer func() { c.end(sound) }() // also if a method of somebody else's panics
	root := c.shapeOf(t)
	c.settle()
	if len(c.problems) == 0 {
		c.checkDefaults()
	}
	err := errors.Join(c.problems...)
	sound = err == nil
	return root, err
}

// end keeps the new shapes, or forgets them.
func (c *compiler) end(keep bool) {
	for _, s := range c.order {
		switch {
		case !keep:
			delete(c.shapes, s.typ)
		case len(s.judged) == 0 && len(s.defaulted) == 0:
			s.fields = nil // nothing in it matters
		}
	}
	c.order, c.problems = nil, nil
}

// tagged reports whether a field has a tag of this package.
func tagged(f reflect.StructField) bool {
	first, err := scanTags(f.Tag)
	return err != nil || first != "" || f.Tag.Get("listType") != ""
}

// leaf says how a type looks from outside.
type leaf struct {
	opaque bool // see isOpaque
	nilled bool // see nullWhenZero
}

func (c *compiler) leafOf(t reflect.Type) leaf {
	l, ok := c.leaves[t]
	if !ok {
		l = leaf{opaque: isOpaque(t)}
		l.nilled = l.opaque && nullWhenZero(t)
		c.leaves[t] = l
	}
	return l
}

func (c *compiler) refuse(declaring reflect.Type, f reflect.StructField, cause string) {
	c.problems = append(c.problems, fmt.Errorf("constraints of type %v: field %s: %s", declaring, f.Name, cause))
}

func (c *compiler) shapeOf(t reflect.Type) *shape {
	if s, ok := c.shapes[t]; ok {
		return s
	}
	s := &shape{typ: t}
	c.shapes[t] = s
	c.order = append(c.order, s)
	for _, m := range membersOf(t, c.refuse) {
		r, err := parseRule(&m)
		if err != nil {
			c.refuse(m.declaring, m.StructField, err.Error())
			continue
		}
		p := c.placeOf(m.Type, nil)
		p.member, p.rule = m, r
		if m.Tag.Get("listType") != "" {
			p.match = matchOf(&m)
		}
		if check := p.match.unique(); check != nil {
			if p.rule == nil {
				p.rule = &rule{}
			}
			p.rule.checks = append(p.rule.checks, check)
		}
		for at := p; r != nil && r.items != nil && at.elem != nil; at, r = at.elem, r.items {
			at.elem.rule = r.items
		}
		s.fields = append(s.fields, p)
	}
	return s
}

// placeOf returns the place of a value of type t, without a rule. within are the lists and maps it is in, without a
// struct between.
func (c *compiler) placeOf(t reflect.Type, within []reflect.Type) *place {
	p := &place{nilled: c.leafOf(t).nilled}
	t, ok := dereference(t)
	if !ok || c.leafOf(t).opaque || slices.Contains(within, t) {
		return p
	}
	switch t.Kind() {
	case reflect.Struct:
		p.inner = c.shapeOf(t)
	case reflect.Slice, reflect.Array, reflect.Map:
		p.elem = c.placeOf(t.Elem(), append(within[:len(within):len(within)], t))
	}
	return p
}

// settle finds out which places lead to a rule; what does not is never looked at in an object.
func (c *compiler) settle() {
	for again := true; again; {
		again = false
		for _, s := range c.order {
			for _, p := range s.fields {
				again = p.settle() || again
			}
		}
	}
	for _, s := range c.order {
		for _, p := range s.fields {
			if p.judges {
				s.judged = append(s.judged, p)
				p.match = matchOf(&p.member)
			}
			if p.defaults {
				s.defaulted = append(s.defaulted, p)
			}
		}
	}
}

// settle takes over what is known of the places below, and reports whether that was news.
func (p *place) settle() (news bool) {
	judges, defaults := p.judges, p.defaults
	if p.rule != nil {
		p.judges = p.judges || p.rule.judges()
		p.defaults = p.defaults || p.rule.Default != nil
	}
	if p.elem != nil {
		p.elem.settle()
		p.judges, p.defaults = p.judges || p.elem.judges, p.defaults || p.elem.defaults
	}
	if p.inner != nil && !(p.judges && p.defaults) {
		for _, f := range p.inner.fields {
			p.judges, p.defaults = p.judges || f.judges, p.defaults || f.defaults
		}
	}
	return p.judges != judges || p.defaults != defaults
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
