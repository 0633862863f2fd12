package constraint

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
)

// compiler makes shapes. The shapes of earlier calls are in use and are not changed.
type compiler struct {
	shapes   map[reflect.Type]*shape
	leaves   map[reflect.Type]leaf
	order    []*shape // the new shapes, in the order in which they were found
	problems []error

	tags jsonfield.Seeker // finds the tags of this package
}

// compile returns the shape of t. After an error or a panic none of the new shapes are kept.
func (c *compiler) compile(t reflect.Type) (*shape, error) {
	if c.shapes == nil {
		c.shapes, c.leaves = map[reflect.Type]*shape{}, map[reflect.Type]leaf{}
		c.tags.Match = tagged
	}
	if !c.tags.Finds(t) {
		return &shape{typ: t}, nil
	}
	sound := false
	defer func() { c.end(sound) }() // also if a method of another package's type panics
	root := c.shapeOf(t)
	c.settle()
	if len(c.problems) == 0 {
		c.checkDefaults()
	}
	err := errors.Join(c.problems...)
	sound = err == nil
	return root, err
}

// end keeps the new shapes, or removes them.
func (c *compiler) end(keep bool) {
	for _, s := range c.order {
		switch {
		case !keep:
			delete(c.shapes, s.typ)
		case len(s.judged) == 0 && len(s.defaulted) == 0:
			s.fields = nil // the type has no rules
		}
	}
	c.order, c.problems = nil, nil
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

// placeOf returns the place of a value of type t, without a rule. within are the lists and maps that contain it, without a struct
// between them.
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

// settle determines which places lead to a rule. Other places are skipped in objects.
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

// settle copies what is known of the places below p, and reports whether anything changed.
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

// checkDefaults returns an error for defaults that break a rule, or that are nested without end.
func (c *compiler) checkDefaults() {
	for _, s := range c.order {
		for _, p := range s.fields {
			if p.rule == nil || p.rule.def == nil {
				continue
			}
			v := reflect.New(p.Type).Elem()
			d := defaulter{limit: nested}
			d.fill(p, v)
			if d.endless {
				c.refuse(p.declaring, p.StructField, fmt.Sprintf("tag default: it brings more than %d defaults inside each other; take one of them away", nested))
				continue
			}
			j := judge{path: []step{{name: p.name}}}
			j.value(p, indirect(v), reflect.Value{})
			if len(j.errs) > 0 {
				c.refuse(p.declaring, p.StructField, fmt.Sprintf("tag default:%q: the default is not valid: %v; change it or the rule", p.Tag.Get("default"), j.errs.ToAggregate()))
			}
		}
	}
}

// tagged reports whether a field has a tag of this package.
func tagged(f reflect.StructField) bool {
	first, err := scanTags(f.Tag)
	return err != nil || first != "" || f.Tag.Get("listType") != ""
}
