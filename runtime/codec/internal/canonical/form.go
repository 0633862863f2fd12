// Package canonical recognises JSON that is already what encoding/json would make of it: text which, decoded into a value
// of a Go type as the Kubernetes API does and encoded again, is the same text, byte for byte. To see that takes one pass over the
// text and no value of the type, where decoding and encoding takes ten times as long.
//
// It says "surely" or "perhaps not", and never the first where it is not so: a caller who is told the second decodes and
// encodes. What it knows of a type is made once, by reflection: the order and names of the fields, which of them are
// left out when they are empty or zero, and what a value of each looks like. Of a type with its own methods for JSON, an
// interface, a float and whatever else it has no rule for, it decodes and encodes the text of that value alone.
//
// The rules are those of https://pkg.go.dev/encoding/json#Marshal and of sigs.k8s.io/json, which reads what it writes.
package canonical

// Options refines a Form. The zero Options is that of a type without defaults.
type Options struct {
	// Defaults says that values are given the defaults of their struct tags (see package constraint) between decoding and
	// encoding. Then a text is only canonical if every field that has one is there, and not zero.
	Defaults bool
}

// Form is what the canonical JSON of one Go type looks like. It is immutable: all methods may be called concurrently.
type Form struct {
	top *object
}

// no is the offset that says "perhaps not".
const no = -1

// rule recognises the values of one type.
type rule interface {
	// match returns the offset after the canonical value that begins at an offset, or no.
	match(r *reader, at int) (end int, is facts)
}

const null = "null"
