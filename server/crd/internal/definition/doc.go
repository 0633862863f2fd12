// Package definition is everything about writing a CustomResourceDefinition that needs nothing but the definition itself, and
// the one it replaces: defaults, what a write changes besides, validation and warnings. It is pure: it reads no clock, starts
// nothing, keeps nothing between calls, and everything may be called concurrently on different definitions.
//
// # The walk of a write
//
//	SetDefaults(crd)                        // of what was decoded, also from storage
//	PrepareForCreate(crd)                   // or PrepareForUpdate(crd, old), PrepareForStatusUpdate(crd, old)
//	errs := validator.Validate(ctx, crd)    // or ValidateUpdate(ctx, crd, old); and the function ValidateStatusUpdate(crd, old)
//	warnings := Warnings(crd, old)          // old is nil on create; there are none for the status
//	Canonicalize(crd)                       // if there are no errors
//
// Only SetDefaults, the PrepareFor functions and Canonicalize change something, and only crd; old is never changed, nor does crd
// refer to it afterwards. The functions have the shapes of the fields of a registry.Strategy, mostly without the context. A [Validator]
// has what rules in CEL are compiled with, which takes a while to make: a program has one. A registry
// does by itself what it does for all kinds: metadata is judged there (but for what the name has to be, and the annotation
// that protected groups need), uid, resourceVersion and creationTimestamp are set there, and so is the generation, which
// grows with every change of the spec.
//
// # Errors
//
// Errors have the types, paths, values and texts of kube-apiserver, in its order. It judges a definition in an internal
// form, and that shows in the paths: what all versions have the same is at the top of the spec there. A schema that is the
// same in all versions, as it is where there is only one, is spec.validation.openAPIV3Schema; one that is not is
// spec.versions[i].schema.openAPIV3Schema. So it is, each by itself, with subresources, additionalPrinterColumns and
// selectableFields. The parts of a conversion webhook are spec.conversion.webhookClientConfig and
// spec.conversion.conversionReviewVersions, and the path of a printer column is JSONPath. None of this is what the author
// of the definition wrote, but it is what clients see.
//
// What kube-apiserver reports in the random order of Go's maps comes sorted by name here. Where an error shows a part of the
// definition, it does not if that is longer than 64 KiB. Selectable fields that make the code of kube-apiserver panic are
// errors.
//
// # What an update may keep
//
// A definition that is stored may break rules that were made after it. ValidateUpdate does not hold against the new
// definition what the old one was guilty of in any of its versions: see [structural.Tolerance], and here: versions without
// a schema, webhooks that know no known version of ConversionReview, a CA bundle that is none, more selectable fields than are
// allowed as long as they do not change, and preserveUnknownFields.
//
// # Bounds
//
// A definition has room for what would take a server minutes or gigabytes to judge, compile, publish or show errors of, and
// kube-apiserver accepts it. Here it is refused with 422 at the field that is too much, Too many or Too long where that is what
// it is, and nothing else of it is judged: more than 100 versions, short names, categories, versions of ConversionReview or
// columns of a version, 64 keys of a list, paths of a webhook of more than 2 KiB; and of all versions together, where what they
// have the same counts once: more rules or text of rules than [rules.MaxRules], [rules.MaxRule] and [rules.MaxRuleText] say, regular
// expressions of more than [structural.MaxPatternSize] instructions, and schemas whose paths, by which errors name them, are more
// than 16 MiB. The largest definitions of well-known projects are below a tenth of each, but for columns, of which some have 16,
// and are named in bounds.go. A definition out of bounds that some other server has stored can be changed in all but its spec.
//
// # What is not done
//
// Paths of a scale that lead nowhere are refused: see [Unsupported].
//
// # Names and conditions
//
// Besides writes there is what a controller says in the status of a definition: which of its names are accepted beside those
// of all others ([AcceptNames]), and its conditions ([SetEstablished], [SetStructural], [SetApproval], [Terminate] and
// [SetTerminating]). These change a definition in place, and tell whether they did.
//
// # Sources
//
// https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/custom-resource-definition-v1/ and
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/.
package definition
