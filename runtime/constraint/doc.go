// Package constraint reads rules from the struct tags of Go types, enforces them, and tells them to whoever publishes
// them. A rule is written once, beside the field:
//
//	type WidgetSpec struct {
//		Size  int32    `json:"size" minimum:"1" maximum:"10"`
//		Color string   `json:"color,omitempty" enum:"red,green" default:"red"`
//		Name  *string  `json:"name,omitempty" required:"true" pattern:"^[a-z]+$" maxLength:"63"`
//		Parts []Part   `json:"parts,omitempty" maxItems:"8" listType:"map" listMapKey:"name"`
//		Zone  string   `json:"zone,omitempty" immutable:"true"`
//	}
//
// [Of] compiles the [Rules] of a type once, and refuses tags that make no sense. The rules of a registered kind are
// in runtime.Kind: its defaults are set after decoding, the registry enforces the rest, and OpenAPI documents and
// kubectl explain show all of it.
//
// # Tags
//
// The names are those of JSON schema.
//
//	minimum, maximum, multipleOf              a number that fits the field
//	exclusiveMinimum, exclusiveMaximum        "true": the bound itself is not allowed
//	minLength, maxLength                      of a string, in characters
//	pattern                                   of a string: it has a match of this RE2 expression; ^ and $ anchor it
//	format                                    of a string: one of Kubernetes' formats, see below
//	enum                                      of a string or number: the values, separated by commas
//	minItems, maxItems                        of a list
//	uniqueItems                               "true": no string, number or boolean is in the list twice
//	minProperties, maxProperties              of a map
//	items, additionalProperties               of a list, of a map: tags for its elements, as below
//	required                                  "true": the field may not be absent
//	default                                   what an absent field gets: JSON, or for a string the text itself
//	immutable                                 "true": the field never changes
//	listType, listMapKey                      atomic, set or map, and the JSON names of a map's keys, with commas
//
// The tags mapType and structType, atomic or granular, say how server-side apply merges, and are no rules; package
// schema has them. Strategic merge patches follow patchStrategy and patchMergeKey, not listType: they replace a list
// that has only that.
//
// Elements that are structs have tags at their own fields. Others are constrained from the field that holds them, by
// tags inside a tag: `items:"maxLength:\"63\" pattern:\"^[a-z]+$\""`.
//
// Bounds of a pointer are those of what it points to. Rules are found in nested and embedded structs, behind
// pointers, in lists and in maps, also where a type contains itself. They are not looked for in types that have a
// JSON of their own, such as metav1.Time and resource.Quantity. Fields of such types can be required, immutable and
// have a default, which may be written as the text it is in JSON: default:"1Gi".
//
// Elements of lists with listType set, or map, may be there once. That and the pairing of elements below need the
// struct tags: a comment marker such as +listType=map is not seen by a running program. The tag patchMergeKey of
// Kubernetes types pairs elements too.
//
// Formats are those which Kubernetes checks in custom resources: bsonobjectid, byte, cidr, creditcard, date,
// date-time, datetime, duration, email, hexcolor, hostname, ipv4, ipv6, isbn, isbn10, isbn13, k8s-long-name,
// k8s-short-name, mac, password, rgbcolor, ssn, uri, uuid, uuid3, uuid4 and uuid5; for integers int32 and int64, for
// other numbers float and double.
//
// # When a field is absent
//
// A field is absent when its pointer, list, map or interface is nil, when its json tag has omitempty or omitzero and
// JSON leaves the value out, and when the value is null in JSON (a zero metav1.Time). The zero value of any other
// field is a value like others: a field `json:"size"` that a client leaves out is 0 and is judged as 0. An absent field
// is judged by required and immutable only.
//
// So a field without omitempty that is no pointer, list, map or interface is always there. To require it is refused,
// for it would have no effect.
//
// # Defaults
//
// A default is set when the field is absent; when the field is no pointer, list, map or interface, also when it has its
// zero value: for a Go program 0 that a client sent is the same as 0 because the client sent nothing. Where zero is a
// sensible thing to ask for, make the field a pointer. A boolean that is true by default must be one. A default has
// to be valid itself. Fields inside a nil pointer get no defaults unless the pointer has one, such as default:"{}".
//
// # Updates
//
// Rules may become stricter while objects are stored: [Rules.ValidateUpdate] reports no error about a value that an
// update leaves as it was (KEP-4008), and a required field may stay missing where it was. What a value was before is
// known by its field, by its key in a map, and in lists by the keys of listType map or the value of listType set. In
// every other list it is only known when the whole list is unchanged.
//
// An immutable field must not be changed, removed, or added later, as with +k8s:immutable in Kubernetes. It belongs
// to the struct it is in: in an object, list element or map value that was not there before it may have any value, and
// removing the whole of it is no change of the field. A struct whose json tag has omitempty or omitzero was not there
// while it was all zero: a status, before it is first written. Make the outer field immutable as well to forbid that.
//
// # Errors
//
// Errors are apimachinery's field errors, with the types and words that kube-apiserver uses for custom resources:
//
//	spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1
//	spec.color: Unsupported value: "blue": supported values: "red", "green"
//
// The key of a map is in brackets, spec.weights[a.b], as in errors of built-in kinds; of custom resources kube-apiserver
// writes spec.weights.a.b.
//
// # Sources
//
// https://json-schema.org/draft-04/json-schema-validation,
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation,
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4008-crd-ratcheting and
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/5073-declarative-validation-with-validation-gen.
package constraint
