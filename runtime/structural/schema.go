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

// Schema says what a JSON value may be. It is a tree: what is specified in it directly is the structure, which says what
// is pruned and defaulted; Values judge what is there. Make one with [Compile]: one that is made otherwise is not
// complete. The zero value, and a nil one, specify nothing: everything is valid and all members are unknown.
//
// A Schema is shared and nobody changes it, so all methods may be called concurrently. It does not refer to what it was
// compiled from, and has no descriptions, titles and examples.
type Schema struct {
	// Type is "object", "array", "string", "integer", "number" or "boolean". It may be "" with IntOrString or
	// PreserveUnknown, and is inside Values: only the two alternatives of an int-or-string have one there.
	Type     string
	Nullable bool
	// Default is a decoded JSON value, or nil if there is none: null is no default. It is pruned. Nobody changes it:
	// users get copies.
	Default any

	// Properties are the members of an object that have a schema of their own. Others are as Others says, and have the
	// schema Additional where that is OthersDescribed.
	Properties map[string]*Schema
	Others     Others
	Additional *Schema
	// Items is the schema of a list's elements.
	Items *Schema

	// PreserveUnknown, Embedded, IntOrString, ListType ("" is atomic), ListMapKeys and MapType ("" is granular) are the
	// extensions x-kubernetes-preserve-unknown-fields, -embedded-resource, -int-or-string, -list-type, -list-map-keys
	// and -map-type.
	PreserveUnknown bool
	Embedded        bool
	IntOrString     bool
	ListType        string
	ListMapKeys     []string
	MapType         string

	// Values are the conditions on values, nil if there are none.
	Values *Values

	// Rules are x-kubernetes-validations, which this package keeps and does not evaluate.
	Rules []apiextensionsv1.ValidationRule

	defaulted []string // the properties that have a default, sorted
	below     trait    // what is here or in a schema of the structure below

	defaultSize int64 // of the defaults below, each counted once

	patternSize int // instructions of all patterns here and below; only the root of what Compile returns has it
}

// Others is what a schema says about members of an object that are not in its properties: additionalProperties.
type Others uint8

// There is no additionalProperties in OthersUnspecified: other members are valid, and pruned unless they are preserved.
// With the other three they are kept. false says that they are invalid, true that they are anything, but nothing inside
// of them is specified, so that members of theirs are pruned.
const (
	OthersUnspecified Others = iota
	OthersForbidden          // additionalProperties: false
	OthersAny                // additionalProperties: true
	OthersDescribed          // additionalProperties: {...}
)

// Values are conditions on a value besides its type. Each concerns only values of the types it makes sense for: a
// maximum says nothing about a string. Pointers are nil and lists empty where there is no condition.
type Values struct {
	Format           string // as written, also if it is not known and means nothing
	Minimum          *float64
	Maximum          *float64
	ExclusiveMinimum bool
	ExclusiveMaximum bool
	MultipleOf       *float64
	MinLength        *int64 // in characters
	MaxLength        *int64
	Pattern          string // RE2; it need not match the whole string
	MinItems         *int64
	MaxItems         *int64
	UniqueItems      bool
	MinProperties    *int64
	MaxProperties    *int64
	Required         []string // in the order written
	Enum             []any    // decoded JSON

	AllOf, AnyOf, OneOf []*Schema
	Not                 *Schema

	texts      map[string]struct{} // the texts in Enum, if it is long; else nil
	enumBytes  int64               // of Enum in an error, about
	pattern    *formats.Pattern
	format     string            // Format if it is known for the type, else ""
	hasFormat  func(string) bool // nil: every string has it
	impossible bool              // no number is valid, for a bound does not fit the type
}

// trait is something that some walks look for, so that they leave out the parts of a schema that have none of it.
type trait uint8

const (
	hasDefault      trait = 1 << iota // a default of a property, an element or an additional property
	hasEmbedded                       // an embedded resource
	hasListType                       // a list of type set or map
	hasManyDefaults                   // a default that can be set more than once in one object
)

// traitOf returns what is in s and below; s may be nil.
func traitOf(s *Schema) trait {
	if s == nil {
		return 0
	}
	return s.below
}

// types are the JSON types that s allows, nil for all.
func (s *Schema) types() []string {
	switch {
	case s.IntOrString:
		return []string{word.Integer, word.String}
	case s.Type != "":
		return []string{s.Type}
	}
	return nil
}

// At returns the schema that a simple path leads to, and the path as field errors write it: ".spec.color" is that of a
// selectable field or of a scale subresource. Each name is one of a property, or any one where only additional properties
// are described. Elements of lists cannot be reached. With brackets also ['name'] is understood, as in the
// fieldPath of a rule; a backslash escapes there.
//
// The errors have the words of kube-apiserver. An empty path leads to s.
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

// All returns s and the schemas of the structure below it, sorted, each before those below it, with their paths in the
// schema: properties[spec].items. path is that of s. What is inside of Values is no structure.
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
