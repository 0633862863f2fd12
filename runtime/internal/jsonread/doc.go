// Package jsonread decodes JSON into new Go values, several times as fast as encoding/json, if neither the text nor the type is
// unusual. For anything else it returns false without a reason, and the caller decodes the text from the start in the ordinary
// way. Errors, warnings and corner cases therefore never depend on this package.
//
// A text that it decodes gets the result of UnmarshalStrict of sigs.k8s.io/json without problems. Names match exactly, whole
// numbers in an interface are int64, null leaves a value as it was, and types with a method UnmarshalJSON decode themselves. See
// https://pkg.go.dev/sigs.k8s.io/json#UnmarshalStrict for the rules, which are otherwise those of encoding/json.
//
// # Refused texts and types
//
// Refused texts: invalid JSON, members that the type does not have, duplicate members, values of another type, numbers that do
// not fit, names of struct fields with escapes or non-ASCII characters, invalid UTF-8, halves of surrogate pairs, values nested
// more than a thousand levels deep, and anything but white space after the value.
//
// Refused types: structs with two names that differ only in case, and structs with more than 128 fields. A text is also refused
// if it has a value for one of these: interfaces other than any, arrays, json.Number, fields with the option ",string", named
// slices of bytes, named pointer types, types that only have UnmarshalText, and fields of embedded pointers or of unexported
// embedded structs.
package jsonread
