// Package structural has the schemas of custom resources: what a CustomResourceDefinition says about objects that no Go
// type describes. It judges such schemas, and does with untyped objects what they say. It is pure: it reads no clock,
// starts nothing and keeps nothing between calls.
//
// # The nouns
//
// A schema as people write it is an apiextensionsv1.JSONSchemaProps. [Check] says whether it may be used, and [Warnings]
// what should be told to its author. [Compile] makes a [Schema] of it, which is a tree: what is specified in it outside
// of allOf, anyOf, oneOf and not is the structure, which says what members there are, what is dropped and what is
// defaulted. The rest are conditions on values, in [Values].
//
// [OpenAPI] makes of the schema as written what is published of it, and [Schema.MergeSchema] of the compiled one that by which
// server-side apply merges.
//
// A value is decoded JSON: map[string]any, []any, string, bool, int64, float64 or nil. No other Go type is allowed
// anywhere in it; package k8s.io/apimachinery/pkg/util/json decodes so. What a method has to change it changes in
// place, which the caller has to own alone; methods that only judge change nothing.
//
// # The walk of an object
//
//	unknown, err := schema.Conform(object, structural.ConformOptions{Report: 100}) // decoded: types, unknown members, nulls
//	schema.SetDefaults(object)                                                    // then defaults
//	...                                                                           // admission, metadata
//	errs := schema.Validate(nil, object)                                          // ValidateUpdate with the old one
//	errs = append(errs, schema.ValidateEmbedded(nil, object)...)
//	errs = append(errs, schema.CheckLists(nil, object)...)                        // CheckListsUpdate with the old one
//
// Conform is made of [Schema.Prune], [Schema.DropNulls] and [Schema.CoerceEmbedded], which can be called alone. A status
// of its own is validated by the schema of the property: schema.Properties["status"].Validate(field.NewPath("status"), ...).
// Rules in CEL are kept in Schema.Rules for whoever evaluates them; nothing here does.
//
// # Errors
//
// Errors are apimachinery's field errors with the types and words of kube-apiserver, where kube-openapi's validation
// makes them. Each text is told once, and of the branches of an anyOf or oneOf that all fail, the errors are those of the
// one that fits best. Some habits are odd but kept, because clients see them:
//
//   - a number that does not fit the format of its type, and failures of anyOf, oneOf, allOf and not, are errors of the
//     path that Validate was given, and name theirs in the text;
//   - a list passes as a string that has a format;
//   - the value of an enum is converted to the type of each alternative before it is compared, so 65 is "A";
//   - members of additionalProperties are named ".name" at the root of the value in the text.
//
// What kube-apiserver reports in the random order of Go's maps comes sorted by name here, and of several faults in embedded
// metadata, of which it reports any one, it is the first by its path. There are a few other differences: a value that is
// wrong more than a thousand times over has its first thousand errors reported; schemas have a [MaxDepth]; where an error
// shows a whole schema it is as its author wrote it; times in metadata that are zero are dropped at once, not written as
// null before; and unknown metadata of an object whose root is an embedded resource as well is told once.
//
// # Bounds
//
// Whoever may write a definition can make objects expensive, and whoever may write objects meets that. kube-apiserver has none of
// these bounds, and works on for minutes when nobody waits for the answer, or runs out of memory:
//
//   - schemas are nested at most [MaxDepth] deep, and their regular expressions have at most [MaxPatternSize] instructions together:
//     texts do not match those beyond;
//   - judging an object takes at most [MaxEffort], since conditions multiply with values. One that takes more has the one error
//     that says so, unless an update changes nothing but its metadata, so that it can be labelled, freed of finalizers and deleted;
//   - at most [MaxDefaults] are set in one object;
//   - the errors about one value are a thousand, or a megabyte, at most, and paths in errors and of unknown fields that are longer
//     than 8 KiB end with dots.
//
// What else is done takes time and memory by the size of the object, and of the schema once, when it is compiled. A list that is
// validated with uniqueItems, which no new definition may have, takes effort by the square of its length.
//
// # Ratcheting
//
// A schema may become stricter while objects are stored. [Schema.ValidateUpdate] leaves out errors of values that an
// update does not change (KEP-4008). Values are paired through properties and additionalProperties, and through lists
// of type map by their keys; elements of other lists are not, so such a list counts as a whole. An object with members
// that the schema does not describe always counts as changed. What is inside allOf, anyOf, oneOf and not is not
// ratcheted by itself, nor are apiVersion and kind at the root. Duplicates in lists of type set and map are tolerated
// if the old object had any: [Schema.CheckListsUpdate].
//
// # Sources
//
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/,
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/1693-validation-pruning-and-defaulting (structural
// schemas, pruning, defaulting), https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4008-crd-ratcheting
// and https://json-schema.org/draft-04/json-schema-validation.
package structural
