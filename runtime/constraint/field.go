package constraint

import (
	"encoding/json"
	"reflect"
)

// Field is what the tags of one struct field say, in the words of JSON schema, for whoever publishes it. The zero
// Field says nothing.
type Field struct {
	Required  bool
	Immutable bool
	// Default is JSON; nil: none.
	Default json.RawMessage

	// Bounds of a number; "" is none.
	Minimum, Maximum, MultipleOf       json.Number
	ExclusiveMinimum, ExclusiveMaximum bool

	// Bounds of a text, in characters, and of the number of elements of a list and of entries of a map; nil is none.
	MinLength, MaxLength         *int64
	MinItems, MaxItems           *int64
	MinProperties, MaxProperties *int64

	// Pattern is an RE2 expression that a text has a match of, Format the name of a format; "" is none.
	Pattern, Format string
	// Enum are all values that a text (string) or number (int64, uint64, float32 or float64) may have; nil: any.
	Enum []any
	// UniqueItems says that no element of a list is there twice.
	UniqueItems bool
	// Items says what holds for every element of a list or value of a map; nil: nothing.
	Items *Field
}

// ParseField reads the tags of a struct field. Errors name the tag and the cure, not the field. What only shows in
// the light of other types, such as a default that breaks a rule inside it, is found by [Of].
func ParseField(f reflect.StructField) (Field, error) {
	m, inlined, ok := memberOf(f)
	if !ok || inlined {
		return Field{}, nil
	}
	r, err := parseRule(&m)
	if err != nil || r == nil {
		return Field{}, err
	}
	return r.Field, nil
}
