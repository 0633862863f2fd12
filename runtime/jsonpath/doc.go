// Package jsonpath finds values in decoded JSON by the paths that CustomResourceDefinitions use for the columns of their
// tables: ".spec.size", ".status.conditions[?(@.type==\"Ready\")].status". It is the dialect of kubectl, see
// https://kubernetes.io/docs/reference/kubectl/jsonpath/, without the braces around a path and without range and end.
//
//	.name ['name']     a member of an object; a backslash in .name escapes the character behind it
//	.* [*]             all members of an object (and the bytes of a string), all elements of a list
//	..                 the value and all that is below it, but for what has nothing below it
//	[1] [-1] [0:4:2]   elements of a list by number; a slice has its start, its end (not included) and its step
//	[0,2] ['a','b']    several of these
//	[?(@.a=="b")]      the elements of a list that are like that: == != < <= > >= , or with a path alone, that have it
//	@ $                where the path is
//
// A path is compiled once by [Parse] and evaluated as often as wanted. The package is pure. Values are those of decoded JSON,
// map[string]any, []any, string, bool, int64, float64 or nil; they are not changed, and what is found is not copied.
//
// What kubectl's implementation does with unusual paths is done here too, for tables show it: a quoted name with dots leads
// through several members, a number is compared only with a number of the same type (1 with 1, not with 1.0), and whatever
// parses as a constant yields that constant. There are these differences:
//
//   - members of objects come sorted by name, which is a random order there;
//   - the words range and end, which make loops over text there, are errors when they are met;
//   - an evaluation that comes across more than about a quarter of a million values is an error, where several .. in one path
//     could keep a processor busy for hours.
package jsonpath
