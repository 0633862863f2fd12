package structural

import (
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"
	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CheckLists returns the elements of lists of type set that are there twice, and those of lists of type map whose keys are.
// Of many equal ones the second is told. There are a thousand errors at most, or some megabytes of them.
func (s *Schema) CheckLists(path *field.Path, value any) field.ErrorList {
	if s.listsFit(value) {
		return nil
	}
	var told jsonvalue.Errors
	s.listErrors(&told, path, value)
	return told.List
}

// CheckListsUpdate is CheckLists for a value that was old before. It tolerates everything if old is no better.
func (s *Schema) CheckListsUpdate(path *field.Path, value, old any) field.ErrorList {
	errs := s.CheckLists(path, value)
	if len(errs) > 0 && len(s.CheckLists(path, old)) > 0 {
		return nil
	}
	return errs
}

// listsFit says that CheckLists surely finds nothing.
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

// sameKeys says that two elements of a list of type map, objects or nil, have the same keys; absence is one.
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

// listErrors finds out what is wrong, if anything is.
func (s *Schema) listErrors(told *jsonvalue.Errors, path *field.Path, value any) {
	if traitOf(s)&hasListType == 0 || told.Full() {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if property, ok := s.Properties[name]; ok {
				property.listErrors(told, path.Child(name), v[name])
			} else {
				s.Additional.listErrors(told, path.Key(name), v[name])
			}
		}
	case []any:
		switch s.ListType {
		case word.ListSet:
			for _, i := range jsonvalue.Repeated(v) {
				if told.Full() {
					return
				}
				told.Add(field.Duplicate(path.Index(i), v[i]))
			}
		case word.ListMap:
			s.keyErrors(told, path, v)
		}
		for i, element := range v {
			s.Items.listErrors(told, path.Index(i), element)
		}
	}
}

// keyErrors finds elements of a list of type map that have the keys of another.
func (s *Schema) keyErrors(told *jsonvalue.Errors, path *field.Path, list []any) {
	keys := make([]any, len(list))
	for i, element := range list {
		object, ok := element.(map[string]any)
		if !ok && element != nil {
			told.Add(field.Invalid(path.Index(i), element, "must be an object for an array of list-type map"))
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
	if len(s.ListMapKeys) == 1 { // numbers of different types are different then
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
		if told.Full() {
			return
		}
		told.Add(field.Duplicate(path.Index(i), keys[i]))
	}
}

// absent stands for a key that an element does not have. It is not null.
type absent struct{}
