package jsonfield

import (
	"maps"
	"reflect"
)

// Seeker reports whether a type, or any type inside it, has a struct field for which Match returns true. Most types have no such
// field, and finding that out is much cheaper than reading their tags. A Seeker caches the types that have none. Match must be
// set; it is called for every field, also for fields that JSON does not have. A Seeker must not be used concurrently.
type Seeker struct {
	// Match reports whether a field is one that the Seeker looks for.
	Match func(f reflect.StructField) bool

	none map[reflect.Type]struct{}
}

// Finds reports whether t leads to such a field.
func (s *Seeker) Finds(t reflect.Type) bool {
	met := map[reflect.Type]struct{}{}
	for todo := []reflect.Type{t}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		_, none := s.none[at]
		if _, again := met[at]; none || again {
			continue
		}
		met[at] = struct{}{}
		switch at.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			todo = append(todo, at.Elem())
		case reflect.Struct:
			for f := range at.Fields() {
				if s.Match(f) {
					return true
				}
				todo = append(todo, f.Type)
			}
		}
	}
	if s.none == nil {
		s.none = met
	} else {
		maps.Copy(s.none, met)
	}
	return false
}
