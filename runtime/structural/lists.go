package structural

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CheckLists returns the elements of lists of type set that are there twice, and those of lists of type map whose keys are.
// Of many equal ones the second is told. There are a thousand errors at most, or some megabytes of them.
func (s *Schema) CheckLists(path *field.Path, value any) field.ErrorList {
	if s.listsFit(value) {
		return nil
	}
	var told told
	s.listErrors(&told, path, value)
	return told.errs
}

// told are errors about a value, as many as are told.
type told struct {
	errs  field.ErrorList
	bytes int // of their texts
}

// maxErrorBytes is how long the errors about one value may be together. Each shows where it is, in the names of all around it, and
// the value.
const maxErrorBytes = 1 << 20

// add adds an error unless there are enough.
func (t *told) add(err *field.Error) {
	if !t.full() {
		t.errs = append(t.errs, err)
		t.bytes += len(err.Field) + len(err.ErrorBody())
	}
}

func (t *told) full() bool { return len(t.errs) >= maxErrors || t.bytes > maxErrorBytes }

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
		case listSet:
			if len(v) > fewElements && len(repeated(v)) > 0 || len(v) <= fewElements && !distinct(v, equalAsJSON) {
				return false
			}
		case listMap:
			if len(v) > fewElements {
				var found told
				if s.keyErrors(&found, nil, v); len(found.errs) > 0 {
					return false
				}
				break
			}
			for _, element := range v {
				if _, ok := element.(map[string]any); !ok && element != nil {
					return false
				}
			}
			if !distinct(v, s.sameKeys) {
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

// distinct says that surely no two elements of a short list are the same.
func distinct(list []any, same func(a, b any) bool) bool {
	for i, a := range list {
		for _, b := range list[:i] {
			if same(a, b) {
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
		if inX != inY || inX && !equalAsJSON(v, w) {
			return false
		}
	}
	return true
}

// equalAsJSON says that two values may be the same when they are written down.
func equalAsJSON(a, b any) bool {
	switch a := a.(type) {
	case int64:
		if f, ok := b.(float64); ok {
			return f == float64(a)
		}
	case float64:
		if i, ok := b.(int64); ok {
			return a == float64(i)
		}
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equalAsJSON)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equalAsJSON)
	}
	if reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false
	}
	return a == b
}

// listErrors finds out what is wrong, if anything is.
func (s *Schema) listErrors(told *told, path *field.Path, value any) {
	if traitOf(s)&hasListType == 0 || told.full() {
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
		case listSet:
			for _, i := range repeated(v) {
				if told.full() {
					return
				}
				told.add(field.Duplicate(path.Index(i), v[i]))
			}
		case listMap:
			s.keyErrors(told, path, v)
		}
		for i, element := range v {
			s.Items.listErrors(told, path.Index(i), element)
		}
	}
}

// keyErrors finds elements of a list of type map that have the keys of another.
func (s *Schema) keyErrors(told *told, path *field.Path, list []any) {
	keys := make([]any, len(list))
	for i, element := range list {
		object, ok := element.(map[string]any)
		if !ok && element != nil {
			told.add(field.Invalid(path.Index(i), element, "must be an object for an array of list-type map"))
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
	for _, i := range repeated(compared) {
		if told.full() {
			return
		}
		told.add(field.Duplicate(path.Index(i), keys[i]))
	}
}

// absent stands for a key that an element does not have. It is not null.
type absent struct{}

// repeated returns the indexes of the elements that are there for the second time. Objects and lists are compared as they
// are written down, others with their type: 1 and 1.0 are two elements, [1] and [1.0] are one.
func repeated(list []any) []int {
	scalars, texts := map[any]int{}, map[string]int{}
	var second []int
	for i, element := range list {
		var times int
		switch element.(type) {
		case map[string]any, []any:
			text, _ := json.Marshal(element) // decoded JSON can be encoded
			texts[string(text)]++
			times = texts[string(text)]
		default:
			scalars[element]++
			times = scalars[element]
		}
		if times == 2 {
			second = append(second, i)
		}
	}
	return second
}
