// Package definition implements defaults, preparation, validation and warnings for writes of CustomResourceDefinitions, as far as
// they depend only on the definition and the one that it replaces. The package reads no clock, starts no goroutine and keeps no
// state. All functions may be called concurrently on different definitions.
//
// # Steps of a write
//
//	SetDefaults(crd)                        // after decoding, also from the storage
//	PrepareForCreate(crd)                   // or PrepareForUpdate(crd, old), PrepareForStatusUpdate(crd, old)
//	errs := validator.Validate(ctx, crd)    // or ValidateUpdate(ctx, crd, old); and the function ValidateStatusUpdate(crd, old)
//	warnings := Warnings(crd, old)          // old is nil on create; there are none for the status
//	Canonicalize(crd)                       // if there are no errors
//
// Only SetDefaults, the PrepareFor functions and Canonicalize change anything. They change only crd; old is never changed, and
// crd shares nothing with it afterwards. The functions have the signatures of the fields of a registry.Strategy, mostly without
// the context. A [Validator] has the compiler for rules in CEL, which takes a while to make: a program should have one.
//
// A registry itself does what it does for all kinds. It validates the metadata, except for the rule for the name and the
// annotation that protected groups need. It sets uid, resourceVersion, creationTimestamp and the generation, which grows with
// every change of the spec.
//
// Paths of a scale that lead nowhere are refused: see [Unsupported]. The methods of [Validator] document errors, bounds, and what
// an update may keep.
//
// # Names and conditions
//
// Other functions maintain the status of a definition for a controller. [AcceptNames] decides which of its names are accepted
// beside those of all other definitions. [SetEstablished], [SetNotServed], [SetStructural], [SetApproval], [Terminate] and
// [SetTerminating] set its conditions. They change a definition in place and report whether they changed anything.
//
// # Sources
//
// https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/custom-resource-definition-v1/ and
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/.
package definition
