package structural

import (
	"errors"

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
		if d.left -= sizeOf(s.Default); d.left < 0 {
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

// sizeOf is about how many bytes a value takes, as JSON or in memory.
func sizeOf(value any) int64 {
	const each = 32
	switch v := value.(type) {
	case string:
		return each + int64(len(v))
	case []any:
		n := int64(each)
		for _, element := range v {
			n += sizeOf(element)
		}
		return n
	case map[string]any:
		n := int64(each)
		for name, member := range v {
			n += each + int64(len(name)) + sizeOf(member)
		}
		return n
	}
	return each
}

// way leads from the root of an object to a place in it: names of members, and "" with element for the element of a list.
// It is how a default is seen in the object around it.
type way struct {
	parent  *way // nil before the root
	name    string
	element bool
}

func (w *way) member(name string) *way { return &way{parent: w, name: name} }
func (w *way) index() *way             { return &way{parent: w, element: true} }

// around returns an object with v at the place. It fails only at the root, for what is no object.
func (w *way) around(v any) (map[string]any, error) {
	for ; w != nil; w = w.parent {
		if w.element {
			v = []any{v}
		} else {
			v = map[string]any{w.name: v}
		}
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("object root default value must be of object type")
	}
	return object, nil
}

// find returns what is at the place in an object, false if the way ends before.
func (w *way) find(object any) (any, bool) {
	if w == nil {
		return object, true
	}
	around, ok := w.parent.find(object)
	if !ok {
		return nil, false
	}
	if w.element {
		list, _ := around.([]any)
		if len(list) == 0 {
			return nil, false
		}
		return list[0], true
	}
	members, _ := around.(map[string]any)
	v, ok := members[w.name]
	return v, ok
}

func pruneDefault(root, s *Schema, at *way) error {
	object, err := at.around(apiruntime.DeepCopyJSONValue(s.Default))
	if err != nil {
		return err
	}
	as := root.asResource()
	if _, fault := as.coerce(object, coercion{drop: true}); fault != nil {
		return fault
	}
	as.Prune(object, 0)
	s.Default, _ = at.find(object)
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
