package structural

import (
	"iter"
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/runtime/structural/internal/formats"
	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	"github.com/keelson-dev/keelson/runtime/structural/internal/written"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Schema is a compiled schema of JSON values. It is a tree. Its own fields are the structure, which decides what is pruned and
// defaulted; Values has the conditions on values. Only [Compile] makes a complete Schema. The zero value, and a nil *Schema,
// specify nothing: every value is valid and all members are unknown.
//
// A Schema is immutable, so all methods may be called concurrently. It does not refer to the schema from which it was compiled,
// and has no descriptions, titles and examples.
type Schema struct {
	// Type is "object", "array", "string", "integer", "number" or "boolean". It may be "" with IntOrString or PreserveUnknown.
	// Inside Values it is always "", except in the two alternatives of an int-or-string.
	Type string
	// Nullable means that null is valid.
	Nullable bool
	// Default is a decoded JSON value, or nil if there is no default: null is not a default. It is pruned. It must not be
	// changed; objects get copies.
	Default any

	// Properties are the schemas of the named members of an object.
	Properties map[string]*Schema
	// Others says which other members are valid.
	Others Others
	// Additional is the schema of the other members if Others is OthersDescribed, otherwise nil.
	Additional *Schema
	// Items is the schema of the elements of a list.
	Items *Schema

	// PreserveUnknown is x-kubernetes-preserve-unknown-fields: unknown members are not pruned.
	PreserveUnknown bool
	// Embedded is x-kubernetes-embedded-resource.
	Embedded bool
	// IntOrString is x-kubernetes-int-or-string.
	IntOrString bool
	// ListType is x-kubernetes-list-type; "" is atomic.
	ListType string
	// ListMapKeys is x-kubernetes-list-map-keys.
	ListMapKeys []string
	// MapType is x-kubernetes-map-type; "" is granular.
	MapType string

	// Values are the conditions on values, nil if there are none.
	Values *Values

	// Rules are x-kubernetes-validations. This package keeps them and does not evaluate them.
	Rules []apiextensionsv1.ValidationRule

	defaulted []string // the properties that have a default, sorted
	below     trait    // traits of this schema and of the schemas in the structure below

	defaultSize int64 // of the defaults below, each counted once

	patternSize int // instructions of all patterns here and below; set only in the root that Compile returns
}

// Others is the keyword additionalProperties: it says which members of an object are valid besides the properties.
type Others uint8

// The values of Others. With OthersUnspecified, other members are valid, and are pruned unless unknown fields are preserved. With
// the other three values they are not pruned. With OthersAny they may have any value, but nothing inside them is specified, so
// their own members are pruned.
const (
	OthersUnspecified Others = iota // no additionalProperties
	OthersForbidden                 // additionalProperties: false; other members are invalid
	OthersAny                       // additionalProperties: true
	OthersDescribed                 // additionalProperties: {...}
)

// Values are the conditions on a value besides its type. Each condition concerns only values of a matching type: a maximum has no
// effect on a string. A nil pointer or an empty list means that there is no such condition.
type Values struct {
	Format           string   // as written, even if the format is unknown and has no effect
	Minimum          *float64 // least number
	Maximum          *float64 // greatest number
	ExclusiveMinimum bool     // Minimum itself is invalid
	ExclusiveMaximum bool     // Maximum itself is invalid
	MultipleOf       *float64 // the number must be a multiple of this one
	MinLength        *int64   // in characters
	MaxLength        *int64   // in characters
	Pattern          string   // RE2; it need not match the whole string
	MinItems         *int64   // least length of a list
	MaxItems         *int64   // greatest length of a list
	UniqueItems      bool     // no two elements of a list are equal
	MinProperties    *int64   // least number of members of an object
	MaxProperties    *int64   // greatest number of members of an object
	Required         []string // names of required members, in the order written
	Enum             []any    // valid values, as decoded JSON

	// AllOf, AnyOf and OneOf are schemas of which all, at least one, and exactly one must be valid.
	AllOf, AnyOf, OneOf []*Schema
	// Not is a schema that must be invalid.
	Not *Schema

	texts      map[string]struct{} // the strings in Enum if it is long, otherwise nil
	enumBytes  int64               // approximate size of Enum in an error
	pattern    *formats.Pattern
	format     string            // Format if it has an effect for the type, otherwise ""
	hasFormat  func(string) bool // nil if every string has the format
	impossible bool              // no number is valid, because a bound does not fit the type
}

// trait is a feature that some methods look for. They skip the parts of a schema that do not have it.
type trait uint8

const (
	hasDefault      trait = 1 << iota // a default of a property, an element or an additional property
	hasEmbedded                       // an embedded resource
	hasListType                       // a list of type set or map
	hasManyDefaults                   // a default that can be set more than once in one object
)

// traitOf returns the traits of s and of the schemas below; s may be nil.
func traitOf(s *Schema) trait {
	if s == nil {
		return 0
	}
	return s.below
}

// types returns the JSON types that s allows, nil for all types.
func (s *Schema) types() []string {
	switch {
	case s.IntOrString:
		return []string{word.Integer, word.String}
	case s.Type != "":
		return []string{s.Type}
	}
	return nil
}

// At returns the schema at a simple path, and the path as field errors write it. ".spec.color" is such a path, as in a selectable
// field or a scale subresource. Each name is the name of a property, or any name where only additional properties are described.
// The elements of lists cannot be reached. If brackets is true, ['name'] is valid too, as in the fieldPath of a rule; a backslash
// escapes a character there.
//
// The errors have the words of kube-apiserver. For an empty path the result is s.
func (s *Schema) At(path string, brackets bool) (*field.Path, *Schema, error) {
	var at *field.Path
	err := written.Follow(path, brackets, func(name string) bool {
		switch {
		case s == nil:
			return false
		case s.Properties[name] != nil:
			at, s = at.Child(name), s.Properties[name]
		case s.Properties == nil && s.Others != OthersUnspecified:
			at, s = at.Key(name), s.Additional
		default:
			return false
		}
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	return at, s, nil
}

// All returns s and the schemas of the structure below it, sorted by path, each schema before those inside it. The keys are their
// paths in the schema, as in properties[spec].items. path is the path of s. Schemas inside Values are not part of the structure.
func (s *Schema) All(path *field.Path) iter.Seq2[*field.Path, *Schema] {
	return func(yield func(*field.Path, *Schema) bool) { s.all(path, yield) }
}

func (s *Schema) all(path *field.Path, yield func(*field.Path, *Schema) bool) bool {
	if s == nil {
		return true
	}
	if !yield(path, s) || !s.Items.all(path.Child("items"), yield) || !s.Additional.all(path.Child("additionalProperties"), yield) {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !s.Properties[name].all(path.Child("properties").Key(name), yield) {
			return false
		}
	}
	return true
}
