package constraint

import (
	"encoding/json"
	"reflect"
)

// Field holds the constraints in the tags of one struct field, for code that publishes them. The zero Field has none. The terms
// are those of JSON schema and of
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation.
type Field struct {
	Required  bool // the field must not be absent: see [Rules]
	Immutable bool // the field must not change: see [Rules.ValidateUpdate]
	// Default is JSON; nil: none.
	Default json.RawMessage

	// Minimum, Maximum and MultipleOf constrain a number; "" is none.
	Minimum, Maximum, MultipleOf json.Number
	// ExclusiveMinimum and ExclusiveMaximum mean that the bound itself is not allowed.
	ExclusiveMinimum, ExclusiveMaximum bool

	// MinLength and MaxLength are bounds of the length of a text, in characters; nil is none.
	MinLength, MaxLength *int64
	// MinItems and MaxItems are bounds of the number of elements in a list; nil is none.
	MinItems, MaxItems *int64
	// MinProperties and MaxProperties are bounds of the number of entries in a map; nil is none.
	MinProperties, MaxProperties *int64

	// Pattern is an RE2 expression that a text must match; "" is none. Format is the name of a format that Kubernetes checks in
	// custom resources; "" is none. Formats of strings are bsonobjectid, byte, cidr, creditcard, date, date-time, datetime,
	// duration, email, hexcolor, hostname, ipv4, ipv6, isbn, isbn10, isbn13, k8s-long-name, k8s-short-name, mac, password,
	// rgbcolor, ssn, uri, uuid, uuid3, uuid4 and uuid5. Formats of integers are int32 and int64, and of other numbers float and
	// double.
	Pattern, Format string
	// Enum lists all values that a text (string) or number (int64, uint64, float32 or float64) may have; nil: any.
	Enum []any
	// UniqueItems means that no element may be in the list twice.
	UniqueItems bool
	// Items holds the constraints on every element of a list or value of a map; nil: none.
	Items *Field
}

// ParseField reads the tags of a struct field. Errors name the tag and the correction, but not the field. Errors that depend on
// other types, such as a default that breaks a rule inside it, are only found by [Of].
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
