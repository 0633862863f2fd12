// Package structural implements the schemas of custom resources. It checks and compiles the schemas of a
// CustomResourceDefinition, and validates, prunes and defaults untyped objects by them. It reads no clock, starts no goroutine
// and keeps no state between calls.
//
// A schema as written is an apiextensionsv1.JSONSchemaProps. [Check] returns its errors and [Warnings] its warnings. [Compile]
// makes a [Schema] of it, which is a tree. The keywords outside of allOf, anyOf, oneOf and not are the structure: they decide
// which members exist, are dropped and are defaulted. The other keywords are conditions on values, in [Values]. [OpenAPI]
// converts the schema as written to its published form. [Schema.MergeSchema] returns the schema by which server-side apply
// merges.
//
// A value is decoded JSON: map[string]any, []any, string, bool, int64, float64 or nil. It must not contain any other Go type;
// package k8s.io/apimachinery/pkg/util/json decodes to these types. A method that changes a value changes it in place, so the
// caller must own the value. Methods that validate change nothing.
//
//	unknown, err := schema.Conform(object, structural.ConformOptions{Report: 100}) // decoded: types, unknown members, nulls
//	schema.SetDefaults(object)                                                    // then defaults
//	...                                                                           // admission, metadata
//	errs := schema.Validate(nil, object)                                          // ValidateUpdate with the old one
//	errs = append(errs, schema.ValidateEmbedded(nil, object)...)
//	errs = append(errs, schema.CheckLists(nil, object)...)                        // CheckListsUpdate with the old one
//
// To validate a status alone, use the schema of the property: schema.Properties["status"].Validate(field.NewPath("status"), ...).
//
// # Bounds
//
// A client that may write definitions could make objects expensive, so there are bounds: [MaxDepth], [MaxPatternSize],
// [MaxEffort], [MaxDefaults], and those of the errors that [Schema.Validate] returns. kube-apiserver has none of them; it can
// work for minutes on a request that the client no longer waits for, or run out of memory. All other work is proportional to the
// size of the object, and once to the size of the schema when it is compiled. A list with uniqueItems, which new definitions may
// not use, takes an effort that grows with the square of its length.
//
// # Sources
//
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/,
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/1693-validation-pruning-and-defaulting
// (structural schemas, pruning, defaulting),
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4008-crd-ratcheting and
// https://json-schema.org/draft-04/json-schema-validation.
package structural
