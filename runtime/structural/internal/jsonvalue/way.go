package jsonvalue

import (
	"errors"
)

// SizeOf returns the approximate number of bytes of a value, as JSON or in memory.
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

// Way is the path from the root of an object to a position in it: a name for each member, and element for the single element of a
// list. It is used to put a default into an object.
type Way struct {
	parent  *Way // nil before the root
	name    string
	element bool
}

// Member returns the way to a member.
func (w *Way) Member(name string) *Way { return &Way{parent: w, name: name} }

// Index returns the way to an element.
func (w *Way) Index() *Way { return &Way{parent: w, element: true} }

// Around returns an object that has v at the position. It fails only if the position is the root and v is not an object.
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

// Find returns the value at the position in an object. The result is false if there is none.
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
