package rules

import (
	"strconv"

	"github.com/keelson-dev/keelson/runtime/structural"
)

// unchanged reports whether a value is known to be the same as before the update. If the value has no corresponding old value,
// the nearest value around it that has one decides.
func (w *walk) unchanged(at *place) bool {
	if w.pairs == nil {
		w.pairs = w.pair()
	}
	nearest, _ := w.nearest(at)
	return nearest.Same()
}

// nearest returns the pair of the value at a place, or of the nearest value around it that has a known pair. lost reports whether
// the pair is that of a value around it.
func (w *walk) nearest(at *place) (pair structural.Pair, lost bool) {
	if at == nil {
		return w.pairs.Root(), false
	}
	around, lost := w.nearest(at.above)
	if lost {
		return around, true
	}
	if at.above == nil && at.kind != toElement && (at.name == "apiVersion" || at.name == "kind") {
		return structural.Pair{}, true // both objects are in the same version, whatever version is stored
	}
	var inside structural.Pair
	if at.kind == toElement {
		inside = around.Element(at.index)
	} else {
		inside = around.Member(at.name)
	}
	if !inside.Known() {
		return around, true
	}
	return inside, false
}

// membersHavePast reports whether members of an object correspond to the old members of the same names. They do, unless the
// schema has an invalid map type.
func membersHavePast(s *structural.Schema) bool {
	return s.MapType == "" || s.MapType == "granular" || s.MapType == "atomic"
}

// former finds the elements of the old list, of type map, by their keys.
type former struct {
	keys  []string
	todo  []any       // elements that are not yet in index
	index map[any]any // the first element for each value of the keys
}

// finder returns a former for a list of the schema s. Elements of lists that are not of type map have no corresponding old
// elements.
func finder(s *structural.Schema, old []any) former {
	if s.Type != "array" || s.ListType != "map" || len(s.ListMapKeys) == 0 {
		return former{}
	}
	return former{keys: s.ListMapKeys, todo: old}
}

// find returns the old element with the same keys as element, nil if there is none.
func (f *former) find(element any) any {
	if len(f.todo) == 0 && f.index == nil {
		return nil
	}
	key, ok := f.keyOf(element)
	if !ok {
		return nil
	}
	if found, ok := f.index[key]; ok {
		return found
	}
	for len(f.todo) > 0 {
		candidate := f.todo[0]
		f.todo = f.todo[1:]
		other, ok := f.keyOf(candidate)
		if !ok {
			continue
		}
		if f.index == nil {
			f.index = map[any]any{}
		}
		if _, taken := f.index[other]; !taken {
			f.index[other] = candidate
		}
		if other == key {
			return candidate
		}
	}
	return nil
}

// keyOf returns the keys of an element, if the element has all of them and all are scalars.
func (f *former) keyOf(element any) (any, bool) {
	object, ok := element.(map[string]any)
	if !ok {
		return nil, false
	}
	if len(f.keys) == 1 {
		switch v := object[f.keys[0]].(type) {
		case string, int64, float64, bool:
			return v, true
		}
		return nil, false
	}
	var key []byte
	for _, name := range f.keys {
		key = append(key, 0)
		switch v := object[name].(type) {
		case string:
			key = strconv.AppendQuote(key, v)
		case int64:
			key = strconv.AppendInt(key, v, 10)
		case float64:
			key = strconv.AppendFloat(key, v, 'f', 6, 64)
		case bool:
			key = strconv.AppendBool(key, v)
		default:
			return nil, false
		}
	}
	return string(key), true
}
