package jsonfield

import (
	"maps"
	"reflect"
)

// Seeker tells whether a type has a struct field of some sort, itself or in anything it is made of: most types have no
// tag of a sort, and to see that is much less work than to read them. It remembers the types that have none. Match must be
// set and is asked for every field, those that JSON does not have too. It must not be used concurrently.
type Seeker struct {
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
