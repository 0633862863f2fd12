// Package word has the words of schemas and objects.
package word

// The names of JSON types.
const (
	Object  = "object"
	Array   = "array"
	String  = "string"
	Integer = "integer"
	Number  = "number"
	Boolean = "boolean"
	Null    = "null"
)

// Names with a meaning of their own in objects and schemas.
const (
	ListSet    = "set"
	ListMap    = "map"
	Atomic     = "atomic"
	Granular   = "granular"
	APIVersion = "apiVersion"
	Kind       = "kind"
	Metadata   = "metadata"
)

// IsMeta tells the members that every object has.
func IsMeta(name string) bool {
	return name == APIVersion || name == Kind || name == Metadata
}
