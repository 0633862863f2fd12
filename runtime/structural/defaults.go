package structural

import (
	"github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// MaxDefaults is about how many bytes of defaults are set in one object, where each value counts some more than its text. A small
// object may ask for many: one element {} of a list for a default of a megabyte, and [] in a default for all that its elements
// have, and those in them. A server refuses a body whose defaults take half of what its values may (see package codec's
// BodyLimits); what was stored before a schema got as many is read without the rest. kube-apiserver has no such bound, and takes
// the memory.
const MaxDefaults = 8 << 20

// SetDefaults sets members that are absent, and those that are null although they may not be, to their defaults. It goes into
// the defaults that it has set. Defaults are copied, so that users may change them. It stops at [MaxDefaults].
//
// An element or additional member that is null although it may not be becomes its default too; without one it stays null.
// A default at the root means nothing.
func (s *Schema) SetDefaults(value any) { _ = s.SetDefaultsWithin(value, nil) }

// SetDefaultsWithin is SetDefaults that tells grows how many bytes of defaults are about to be set, counted as for MaxDefaults, each
// time that they are twice what it was told before, and for the first time at 16 KiB. An error of grows ends the work and is
// returned; there are no others.
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

// firstGrowth is how many bytes of defaults are set before somebody is told.
const firstGrowth = 16 << 10

// defaulter sets the defaults of one object.
type defaulter struct {
	left   int64 // of MaxDefaults; negative: no more are set
	counts bool  // some can be set more than once; else there is room for all, and it is known how large they are
	grows  func(bytes int) error
	tell   int64 // how many there are when grows is told next
	err    error // of grows
}

// copyOf returns a copy of the default of s, false if there is no room for it.
func (d *defaulter) copyOf(s *Schema) (any, bool) {
	if d.counts && !d.count(jsonvalue.SizeOf(s.Default)) {
		return nil, false
	}
	return apiruntime.DeepCopyJSONValue(s.Default), true
}

// count counts a default of n bytes, and reports whether there is room for it.
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

// element returns an element or additional member with its defaults.
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

// asResource returns s as the schema of an object with apiVersion, kind and metadata. It has none of these to describe.
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
