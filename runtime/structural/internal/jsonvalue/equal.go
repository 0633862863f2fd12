package jsonvalue

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
)

// Unchanged reports whether two objects are equal except for their metadata.
func Unchanged(value, old any) bool {
	object, ok := value.(map[string]any)
	was, okOld := old.(map[string]any)
	if !ok || !okOld {
		return false
	}
	for name, member := range object {
		if before, ok := was[name]; name != word.Metadata && (!ok || !reflect.DeepEqual(member, before)) {
			return false
		}
	}
	for name := range was {
		if _, ok := object[name]; name != word.Metadata && !ok {
			return false
		}
	}
	return true
}

// Distinct reports whether no two elements of a list are the same. It takes time by the square of the length, so it is for short
// lists.
func Distinct(list []any, same func(a, b any) bool) bool {
	for i, a := range list {
		for _, b := range list[:i] {
			if same(a, b) {
				return false
			}
		}
	}
	return true
}

// Equal reports whether two values may have the same JSON text. An int64 and a float64 of the same value do.
func Equal(a, b any) bool {
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
		return ok && slices.EqualFunc(a, b, Equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, Equal)
	}
	if reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false
	}
	return a == b
}

// Repeated returns the indexes of the elements that occur for the second time. Objects and lists are compared by their JSON text,
// scalars together with their types: 1 and 1.0 are different elements, [1] and [1.0] are equal.
func Repeated(list []any) []int {
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

// IsAlternative compares a value with an alternative of an enum, after converting the value to the type of the alternative if Go
// can convert it.
func IsAlternative(v, alternative any) bool {
	if v == nil || alternative == nil {
		return false
	}
	switch a := alternative.(type) {
	case string:
		switch v := v.(type) {
		case string:
			return v == a
		case int64:
			return reflect.ValueOf(v).Convert(reflect.TypeFor[string]()).String() == a // the character with this number
		}
		return false
	case int64:
		switch v := v.(type) {
		case int64:
			return v == a
		case float64:
			return int64(v) == a
		}
		return false
	case float64:
		switch v := v.(type) {
		case int64:
			return float64(v) == a
		case float64:
			return v == a
		}
		return false
	}
	return reflect.DeepEqual(v, alternative)
}
