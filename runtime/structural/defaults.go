package structural

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// SetDefaults sets members that are absent, and those that are null although they may not be, to their defaults. It goes into
// the defaults that it has set. Defaults are copied, so that users may change them.
//
// An element or additional member that is null although it may not be becomes its default too; without one it stays null.
// A default at the root means nothing.
func (s *Schema) SetDefaults(value any) {
	if traitOf(s)&hasDefault == 0 {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range s.defaulted {
			property := s.Properties[name]
			if was, ok := v[name]; !ok || was == nil && !property.Nullable {
				v[name] = apiruntime.DeepCopyJSONValue(property.Default)
			}
		}
		for name, member := range v {
			if property, ok := s.Properties[name]; ok {
				property.SetDefaults(member)
			} else if s.Additional != nil {
				v[name] = s.Additional.defaultElement(member)
			}
		}
	case []any:
		for i, element := range v {
			v[i] = s.Items.defaultElement(element)
		}
	}
}

// defaultElement returns an element or additional member with its defaults.
func (s *Schema) defaultElement(v any) any {
	if s == nil {
		return v
	}
	if v == nil && !s.Nullable && s.Default != nil {
		v = apiruntime.DeepCopyJSONValue(s.Default)
	}
	s.SetDefaults(v)
	return v
}

// DropNulls removes members of objects that are null, may not be, and have no default: for a Go type null would have been
// the same as absence. Elements of lists stay.
func (s *Schema) DropNulls(value any) {
	if s == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			schema := s.member(name)
			if schema == nil {
				continue
			}
			if member == nil && !schema.Nullable && schema.Default == nil {
				delete(v, name)
				continue
			}
			schema.DropNulls(member)
		}
	case []any:
		if s.Items == nil {
			return
		}
		for _, element := range v {
			s.Items.DropNulls(element)
		}
	}
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

// pruneDefaults makes the defaults in root what is left of them in an object that is decoded.
func pruneDefaults(root *Schema) error {
	var prune func(s *Schema, at *way) error
	prune = func(s *Schema, at *way) error {
		if s == nil {
			return nil
		}
		if s.Default != nil {
			if err := pruneDefault(root, s, at); err != nil {
				return fmt.Errorf("failed to prune default value: %w", err)
			}
		}
		if err := errors.Join(prune(s.Additional, at.member("*")), prune(s.Items, at.index())); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if err := prune(s.Properties[name], at.member(name)); err != nil {
				return err
			}
		}
		s.summarize() // a default of which nothing is left is none
		return nil
	}
	return prune(root, nil)
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
