package structural

import (
	"github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// MaxDefaults is the approximate maximum number of bytes of defaults that are set in one object. Each value counts some bytes
// more than its text. A small object may need many defaults: an element {} of a list may get a default of a megabyte, and an
// element of a default may get further defaults inside it.
//
// A server refuses a body whose defaults take half of the memory that its values may take (see BodyLimits of package codec). A
// stored object whose schema got such defaults later is read without the excess. kube-apiserver has no such bound.
const MaxDefaults = 8 << 20

// SetDefaults sets absent members, and null members that are not nullable, to their defaults. It also sets defaults inside the
// defaults that it has set. Defaults are copied, so the caller may change them. It stops at [MaxDefaults].
//
// An element or additional member that is null but not nullable is set to its default too; without a default it remains null. A
// default at the root has no effect.
func (s *Schema) SetDefaults(value any) { _ = s.SetDefaultsWithin(value, nil) }

// SetDefaultsWithin is like SetDefaults, and calls grows with the number of bytes of defaults that are about to be set, counted
// as for MaxDefaults. It calls grows at 16 KiB, and again each time the number has doubled since the last call. If grows returns
// an error, SetDefaultsWithin stops and returns it. It returns no other errors.
func (s *Schema) SetDefaultsWithin(value any, grows func(bytes int) error) error {
	if traitOf(s)&hasDefault == 0 {
		return nil
	}
	d := defaulter{left: MaxDefaults, counts: s.below&hasManyDefaults != 0, grows: grows, tell: firstGrowth}
	if !d.counts && grows != nil && s.defaultSize >= firstGrowth {
		if err := grows(int(s.defaultSize)); err != nil {
			return err
		}
	}
	d.set(s, value)
	return d.err
}

// firstGrowth is the number of bytes of defaults at which grows is first called.
const firstGrowth = 16 << 10

// defaulter sets the defaults of one object.
type defaulter struct {
	left   int64 // bytes left of MaxDefaults; if negative, no more defaults are set
	counts bool  // some defaults can be set more than once; otherwise all of them fit, and their size is known
	grows  func(bytes int) error
	tell   int64 // number of bytes at which grows is called next
	err    error // the error of grows
}

// copyOf returns a copy of the default of s. The result is false if it exceeds the bound.
func (d *defaulter) copyOf(s *Schema) (any, bool) {
	if d.counts && !d.count(jsonvalue.SizeOf(s.Default)) {
		return nil, false
	}
	return apiruntime.DeepCopyJSONValue(s.Default), true
}

// count counts a default of n bytes, and reports whether it fits.
func (d *defaulter) count(n int64) bool {
	if d.left < 0 {
		return false
	}
	d.left -= n
	if set := MaxDefaults - d.left; d.grows != nil && set >= d.tell {
		d.tell = 2 * set
		if d.err = d.grows(int(set)); d.err != nil {
			d.left = -1
		}
	}
	return d.left >= 0
}

func (d *defaulter) set(s *Schema, value any) {
	if traitOf(s)&hasDefault == 0 || d.left < 0 {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range s.defaulted {
			property := s.Properties[name]
			if was, ok := v[name]; ok && (was != nil || property.Nullable) {
				continue
			}
			if copied, ok := d.copyOf(property); ok {
				v[name] = copied
			}
		}
		for name, member := range v {
			if property, ok := s.Properties[name]; ok {
				d.set(property, member)
			} else if s.Additional != nil {
				v[name] = d.element(s.Additional, member)
			}
		}
	case []any:
		for i, element := range v {
			v[i] = d.element(s.Items, element)
		}
	}
}

// element returns an element or additional member with its defaults set.
func (d *defaulter) element(s *Schema, v any) any {
	if s == nil {
		return v
	}
	if v == nil && !s.Nullable && s.Default != nil {
		if copied, ok := d.copyOf(s); ok {
			v = copied
		}
	}
	d.set(s, v)
	return v
}

func pruneDefault(root, s *Schema, at *jsonvalue.Way) error {
	object, err := at.Around(apiruntime.DeepCopyJSONValue(s.Default))
	if err != nil {
		return err
	}
	as := root.asResource()
	if _, fault := as.coerce(object, coercion{drop: true}); fault != nil {
		return fault
	}
	as.Prune(object, 0)
	s.Default, _ = at.Find(object)
	return nil
}

// asResource returns s as the schema of an object with apiVersion, kind and metadata. s need not describe these fields.
func (s *Schema) asResource() *Schema {
	if s != nil && s.Embedded {
		return s
	}
	resource := &Schema{}
	if s != nil {
		*resource = *s
	}
	resource.Embedded = true
	resource.below |= hasEmbedded
	return resource
}
