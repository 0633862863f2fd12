// Package constraint reads validation rules and defaults from the struct tags of Go types and enforces them:
//
//	type WidgetSpec struct {
//		Size  int32    `json:"size" minimum:"1" maximum:"10"`
//		Color string   `json:"color,omitempty" enum:"red,green" default:"red"`
//		Parts []Part   `json:"parts,omitempty" maxItems:"8" listType:"map" listMapKey:"name"`
//		Zone  string   `json:"zone,omitempty" immutable:"true"`
//	}
//
// [Of] compiles the [Rules] of a type. A registered kind (runtime.Kind) has its rules: the defaults are set after decoding, the
// registry enforces the other rules, and OpenAPI documents and kubectl explain show all of them. The tags have the names of JSON
// schema (https://json-schema.org/draft-04/json-schema-validation):
//
//	minimum, maximum, multipleOf              a number that fits the field
//	exclusiveMinimum, exclusiveMaximum        "true": the bound itself is not allowed
//	minLength, maxLength                      of a string, in characters
//	pattern                                   of a string: it must match this RE2 expression; ^ and $ anchor it
//	format                                    of a string or number: see [Field]
//	enum                                      of a string or number: the values, separated by commas
//	minItems, maxItems                        of a list
//	uniqueItems                               "true": no string, number or boolean is in the list twice
//	minProperties, maxProperties              of a map
//	items, additionalProperties               of a list, of a map: tags for its elements, as in
//	                                          `items:"maxLength:\"63\" pattern:\"^[a-z]+$\""`
//	required                                  "true": the field must not be absent
//	default                                   the value of an absent field: JSON, or for a string the text itself
//	immutable                                 "true": the field must never change
//	listType, listMapKey                      atomic, set or map, and the JSON names of a map's keys, with commas
//
// The rules for a pointer apply to the value that it points to. Rules are found in nested and embedded structs, behind pointers,
// in lists and in maps, also if a type contains itself. Elements that are structs have tags at their own fields; items and
// additionalProperties are for other elements. Types with their own JSON, such as metav1.Time and resource.Quantity, are not
// searched. Fields of such types may have required, immutable and default; the default of such a field may be the text of its
// JSON string, without quotes: default:"1Gi".
//
// In a list with listType set or map, elements must be unique. A running program does not see markers in comments,
// such as +listType=map, so this needs the struct tags. The tag patchMergeKey of Kubernetes types also identifies elements, in
// [Rules.ValidateUpdate]. The tags mapType and structType, atomic or granular, control how server-side apply merges and are not
// rules: see package schema. Strategic merge patches follow patchStrategy and patchMergeKey, not listType: they replace a list
// that has only listType.
package constraint
