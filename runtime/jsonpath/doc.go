// Package jsonpath finds values in decoded JSON by JSONPath expressions, as CustomResourceDefinitions use them for table columns:
// ".spec.size", ".status.conditions[?(@.type==\"Ready\")].status". The dialect is that of kubectl, see
// https://kubernetes.io/docs/reference/kubectl/jsonpath/, without braces around a path and without range and end.
//
//	.name ['name']     a member of an object; a backslash in .name escapes the next character
//	.* [*]             all members of an object (and the bytes of a string), all elements of a list
//	..                 the value and all values below it that contain other values
//	[1] [-1] [0:4:2]   elements of a list by number; a slice has its start, its end (not included) and its step
//	[0,2] ['a','b']    several of these
//	[?(@.a=="b")]      the elements of a list for which it is true: == != < <= > >= , or a path that must exist
//	@ $                the current value
//
// [Parse] compiles a path, which can be evaluated any number of times. Values must be those of decoded JSON: map[string]any,
// []any, string, bool, int64, float64 or nil. They are not changed, and results are not copied.
//
// Unusual paths behave as in kubectl, because tables show the results: a quoted name with dots leads through several members, a
// number is compared only with a number of the same type (1 with 1, not with 1.0), and a step that parses as a constant yields
// that constant. The differences are:
//
//   - the members of an object are sorted by name; in kubectl their order is random;
//   - the words range and end, which make loops over text in kubectl, are errors when they are evaluated;
//   - an evaluation that visits more than about a quarter of a million values is an error, because several .. in one path could
//     keep a processor busy for hours. 64 bytes of a text that is sorted or compared count as one value.
package jsonpath
