// Package word defines strings that are used in schemas and objects.
package word

// Names of JSON types.
const (
	Object  = "object"
	Array   = "array"
	String  = "string"
	Integer = "integer"
	Number  = "number"
	Boolean = "boolean"
	Null    = "null"
)

// Values of the keywords for list and map types, and names of the members that every object has.
const (
	ListSet    = "set"
	ListMap    = "map"
	Atomic     = "atomic"
	Granular   = "granular"
	APIVersion = "apiVersion"
	Kind       = "kind"
	Metadata   = "metadata"
)

// IsMeta reports whether name is that of a member that every object has.
func IsMeta(name string) bool {
	return name == APIVersion || name == Kind || name == Metadata
}
