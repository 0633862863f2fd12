package structural

import (
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"
	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CheckLists returns an error for duplicate elements of lists of type set, and for elements of lists of type map with duplicate
// keys. If there are many equal elements, the error is about the second one. There are at most a thousand errors, or some
// megabytes of them.
func (s *Schema) CheckLists(path *field.Path, value any) field.ErrorList {
	if s.listsFit(value) {
		return nil
	}
	var errs jsonvalue.Errors
	s.listErrors(&errs, path, value)
	return errs.List
}

// CheckListsUpdate is like CheckLists, for a value that was old before the update. If old has any duplicates, no error is
// returned.
func (s *Schema) CheckListsUpdate(path *field.Path, value, old any) field.ErrorList {
	errs := s.CheckLists(path, value)
	if len(errs) > 0 && len(s.CheckLists(path, old)) > 0 {
		return nil
	}
	return errs
}

// listsFit reports whether CheckLists certainly finds nothing. It may be false for a valid value.
func (s *Schema) listsFit(value any) bool {
	if traitOf(s)&hasListType == 0 {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if !s.member(name).listsFit(member) {
				return false
			}
		}
	case []any:
		switch s.ListType {
		case word.ListSet:
			if len(v) > fewElements && len(jsonvalue.Repeated(v)) > 0 || len(v) <= fewElements && !jsonvalue.Distinct(v, jsonvalue.Equal) {
				return false
			}
		case word.ListMap:
			if len(v) > fewElements {
				var found jsonvalue.Errors
				if s.keyErrors(&found, nil, v); len(found.List) > 0 {
					return false
				}
				break
			}
			for _, element := range v {
				if _, ok := element.(map[string]any); !ok && element != nil {
					return false
				}
			}
			if !jsonvalue.Distinct(v, s.sameKeys) {
				return false
			}
		}
		for _, element := range v {
			if !s.Items.listsFit(element) {
				return false
			}
		}
	}
	return true
}

// sameKeys reports whether two elements of a list of type map, objects or nil, have the same keys. An absent key equals an absent
// key.
func (s *Schema) sameKeys(a, b any) bool {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	for _, name := range s.ListMapKeys {
		v, inX := x[name]
		w, inY := y[name]
		if inX != inY || inX && !jsonvalue.Equal(v, w) {
			return false
		}
	}
	return true
}

// listErrors adds the errors of a value.
func (s *Schema) listErrors(errs *jsonvalue.Errors, path *field.Path, value any) {
	if traitOf(s)&hasListType == 0 || errs.Full() {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if property, ok := s.Properties[name]; ok {
				property.listErrors(errs, path.Child(name), v[name])
			} else {
				s.Additional.listErrors(errs, path.Key(name), v[name])
			}
		}
	case []any:
		switch s.ListType {
		case word.ListSet:
			for _, i := range jsonvalue.Repeated(v) {
				if errs.Full() {
					return
				}
				errs.Add(field.Duplicate(path.Index(i), v[i]))
			}
		case word.ListMap:
			s.keyErrors(errs, path, v)
		}
		for i, element := range v {
			s.Items.listErrors(errs, path.Index(i), element)
		}
	}
}

// keyErrors adds an error for each element of a list of type map that has the keys of an earlier one.
func (s *Schema) keyErrors(errs *jsonvalue.Errors, path *field.Path, list []any) {
	keys := make([]any, len(list))
	for i, element := range list {
		object, ok := element.(map[string]any)
		if !ok && element != nil {
			errs.Add(field.Invalid(path.Index(i), element, "must be an object for an array of list-type map"))
			return
		}
		key := map[string]any{}
		for _, name := range s.ListMapKeys {
			if v, ok := object[name]; ok {
				key[name] = v
			}
		}
		keys[i] = key
	}
	compared := keys
	if len(s.ListMapKeys) == 1 { // then numbers of different types are different
		compared = make([]any, len(keys))
		for i, key := range keys {
			if v, ok := key.(map[string]any)[s.ListMapKeys[0]]; ok {
				compared[i] = v
			} else {
				compared[i] = absent{}
			}
		}
	}
	for _, i := range jsonvalue.Repeated(compared) {
		if errs.Full() {
			return
		}
		errs.Add(field.Duplicate(path.Index(i), keys[i]))
	}
}

// absent represents a key that an element does not have. It is different from null.
type absent struct{}
