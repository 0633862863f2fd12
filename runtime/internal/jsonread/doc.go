// Package jsonread reads JSON into new Go values, several times as fast as encoding/json, where neither the text nor the
// type has anything unusual about it. It refuses all else without saying why, and the caller then reads the text in the
// ordinary way from the start: no error, warning or corner case depends on this package.
//
// What it does not refuse it reads as sigs.k8s.io/json's UnmarshalStrict does, and that finds no problem: names match
// exactly, whole numbers in an interface are int64, null leaves a value as it was, types with a method UnmarshalJSON read
// themselves. See https://pkg.go.dev/sigs.k8s.io/json#UnmarshalStrict for the rules, which are those of encoding/json else.
//
// # What is refused
//
// Of texts: what is not JSON, members that the type does not have, duplicate members, values of another type, numbers that
// do not fit, members whose name has an escape or is not ASCII where a struct has its fields, invalid UTF-8, halves of
// surrogate pairs, values nested more than a thousand levels deep, and everything but white space behind the value. Of
// types: structs two of whose names differ in nothing but case, or have more than 128 fields. Where they are met:
// interfaces other than any, arrays, json.Number, fields with the option ",string", slices of bytes with a name, pointer
// types with a name, values that read themselves as text only, and fields of embedded pointers or of embedded structs that
// are not exported.
package jsonread
