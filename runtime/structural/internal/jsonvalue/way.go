package jsonvalue

import (
	"errors"
)

// SizeOf is about how many bytes a value takes, as JSON or in memory.
func SizeOf(value any) int64 {
	const each = 32
	switch v := value.(type) {
	case string:
		return each + int64(len(v))
	case []any:
		n := int64(each)
		for _, element := range v {
			n += SizeOf(element)
		}
		return n
	case map[string]any:
		n := int64(each)
		for name, member := range v {
			n += each + int64(len(name)) + SizeOf(member)
		}
		return n
	}
	return each
}

// Way leads from the root of an object to a place in it: names of members, and "" with element for the element of a list.
// It is how a default is seen in the object around it.
type Way struct {
	parent  *Way // nil before the root
	name    string
	element bool
}

// Member leads on to a member.
func (w *Way) Member(name string) *Way { return &Way{parent: w, name: name} }

// Index leads on to an element.
func (w *Way) Index() *Way { return &Way{parent: w, element: true} }

// Around returns an object with v at the place. It fails only at the root, for what is no object.
func (w *Way) Around(v any) (map[string]any, error) {
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

// Find returns what is at the place in an object, false if the way ends before.
func (w *Way) Find(object any) (any, bool) {
	if w == nil {
		return object, true
	}
	around, ok := w.parent.Find(object)
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
