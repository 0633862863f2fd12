// Package canonical recognises JSON text that is already in the form that encoding/json writes. Decoding such a text into a value
// of a Go type, as the Kubernetes API does, and encoding that value gives the same text, byte for byte. The check reads the text
// once and makes no value of the type; decoding and encoding takes ten times as long.
//
// The answer is "certainly" or "perhaps not", and never a wrong "certainly": on "perhaps not" the caller decodes and encodes the
// text. The form of a type is computed once, by reflection: the order and names of the fields, the fields that are left out if
// they are empty or zero, and the rule for each value. Values for which there is no rule, such as floats, interfaces and types
// with their own JSON methods, are decoded and encoded one by one. The last member of an object is left out if it is a struct{}: see
// jsonfield.Void.
//
// The rules are those of https://pkg.go.dev/encoding/json#Marshal and of sigs.k8s.io/json, which decodes its output.
package canonical

// Options are the options of [Of]. The zero Options is for a type without defaults.
type Options struct {
	// Defaults means that values get the defaults of their struct tags (see package constraint) between decoding and encoding. A
	// text is then canonical only if every field with a default is present and not zero.
	Defaults bool
}

// Form describes the canonical JSON of one Go type. It is immutable, and all methods may be called concurrently.
type Form struct {
	top *object
}

// no is the offset that means "perhaps not".
const no = -1

// rule recognises the values of one type.
type rule interface {
	// match returns the offset after the canonical value that begins at the offset at, or no.
	match(r *reader, at int) (end int, is facts)
}

const null = "null"
