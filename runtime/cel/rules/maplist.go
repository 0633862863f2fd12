package rules

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/keelson-dev/keelson/runtime/cel"
)

// mapList is a list of type map. The order of its elements does not count in comparisons. X + Y is X in which elements of Y
// replace the elements with the same keys, followed by the other elements of Y.
type mapList struct {
	list
	keys []string // names as in objects, not escaped
}

// Equal implements ref.Val.
func (l *mapList) Equal(other ref.Val) ref.Val { return equalAsMaps(l, other, l.keys, true, l.m) }

// Add implements traits.Adder.
func (l *mapList) Add(other ref.Val) ref.Val { return merged(l.all(), other, l.keys, l.m) }

// ConvertToType implements ref.Val.
func (l *mapList) ConvertToType(t ref.Type) ref.Val { return converted(l, l.list.ConvertToType(t)) }

// derivedMap is a list that a rule has made of lists of type map.
type derivedMap struct {
	traits.Lister
	keys []string
	m    *meter
}

// Equal implements ref.Val.
func (l *derivedMap) Equal(other ref.Val) ref.Val { return equalAsMaps(l, other, l.keys, false, l.m) }

// Add implements traits.Adder.
func (l *derivedMap) Add(other ref.Val) ref.Val {
	return merged(elementsOf(l, l.m), other, l.keys, l.m)
}

// merged adds the elements of other to a list of type map. It takes ownership of the slice all.
func merged(all []ref.Val, other ref.Val, keys []string, m *meter) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	m.spend(len(all) + sizeOf(o))
	places := make(map[any]int, len(all))
	for i, element := range all {
		places[mapKey(element, keys, false, m)] = i
	}
	for it := o.Iterator(); it.HasNext() == types.True; {
		element := it.Next()
		if place, is := places[mapKey(element, keys, false, m)]; is {
			all[place] = element
		} else {
			all = append(all, element)
		}
	}
	return &derivedMap{types.NewRefValList(types.DefaultTypeAdapter, all), keys, m}
}

// equalAsMaps compares lists whose elements correspond by their keys. read means that the keys of elements are compared as they
// are in the object, whether or not they fit the schema.
func equalAsMaps(l traits.Lister, other ref.Val, keys []string, read bool, m *meter) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	size, _ := l.Size().(types.Int)
	if size != o.Size() {
		return types.False
	}
	m.spend(2 * int(size))
	elements := make(map[any]ref.Val, size)
	for it := l.Iterator(); it.HasNext() == types.True; {
		element := it.Next()
		elements[mapKey(element, keys, read, m)] = element
	}
	met := make(map[any]bool, size)
	for it := o.Iterator(); it.HasNext() == types.True; {
		candidate := it.Next()
		key := mapKey(candidate, keys, read, m)
		element, is := elements[key]
		if !is {
			return types.False
		}
		if equal := element.Equal(candidate); equal != types.True {
			return equal
		}
		met[key] = true
	}
	return types.Bool(len(met) == len(elements))
}

// mapKey returns the values of the keys of an element, as a value that may be the key of a Go map.
func mapKey(element ref.Val, keys []string, read bool, m *meter) any {
	var values [3]any
	if len(keys) > len(values) {
		all := make([]any, len(keys))
		for i, key := range keys {
			all[i] = keyValue(element, key, read, m)
			if text, ok := all[i].(string); ok {
				m.read(text, readToQuote)
			}
		}
		return fmt.Sprintf("%#v", all) // %#v quotes strings
	}
	for i, key := range keys {
		values[i] = keyValue(element, key, read, m)
	}
	return values
}

// keyValue returns the value of a key, nil if the element does not have the key.
func keyValue(element ref.Val, key string, read bool, m *meter) any {
	if o, ok := element.(*object); ok && read {
		return comparable(o.value[key], m)
	}
	object, ok := element.(traits.Mapper)
	if !ok {
		return nil
	}
	if escaped, ok := cel.Escape(key); ok {
		key = escaped
	}
	value, found := object.Find(types.String(key))
	if !found || value == nil || types.IsUnknownOrError(value) {
		return nil
	}
	return comparable(value.Value(), m)
}
