package structural

import (
	"github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// MaxDefaults is about how many bytes of defaults are set in one object, where each value counts some more than its text. A small
// object may ask for many: one element {} of a list for a default of a megabyte, and [] in a default for all that its elements
// have, and those in them. A server that stores no larger objects refuses one that has reached it. kube-apiserver has no such
// bound, and takes the memory.
const MaxDefaults = 8 << 20

// SetDefaults sets members that are absent, and those that are null although they may not be, to their defaults. It goes into
// the defaults that it has set. Defaults are copied, so that users may change them. It stops at [MaxDefaults].
//
// An element or additional member that is null although it may not be becomes its default too; without one it stays null.
// A default at the root means nothing.
func (s *Schema) SetDefaults(value any) {
	if traitOf(s)&hasDefault == 0 {
		return
	}
	d := defaulter{left: MaxDefaults, counts: s.below&hasManyDefaults != 0}
	d.set(s, value)
}

// defaulter sets the defaults of one object.
type defaulter struct {
	left   int64 // of MaxDefaults
	counts bool  // some can be set more than once; else there is room for all
}

// copyOf returns a copy of the default of s, false if there is no room for it.
func (d *defaulter) copyOf(s *Schema) (any, bool) {
	if d.counts {
		if d.left -= jsonvalue.SizeOf(s.Default); d.left < 0 {
			return nil, false
		}
	}
	return apiruntime.DeepCopyJSONValue(s.Default), true
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
