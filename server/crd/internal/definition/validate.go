package definition

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/runtime/cel/rules"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validator validates definitions. It may be used concurrently. Make it with [NewValidator]; the zero Validator cannot be used.
//
// # Errors
//
// Errors have the types, paths, values, texts and order of kube-apiserver. kube-apiserver validates a definition in an internal
// form, in which parts that are equal in all versions are at the top of the spec. This determines the paths. A schema that is
// equal in all versions, as it is if there is only one version, is at spec.validation.openAPIV3Schema; otherwise it is at
// spec.versions[i].schema.openAPIV3Schema. The same is true, for each of them separately, of subresources,
// additionalPrinterColumns and selectableFields. The parts of a conversion webhook are at spec.conversion.webhookClientConfig and
// spec.conversion.conversionReviewVersions, and the path of a printer column is called JSONPath. The author of the definition
// wrote none of these paths, but clients see them from kube-apiserver too.
//
// Errors that kube-apiserver reports in the random order of Go's maps are sorted by name. A part of the definition that is longer
// than 64 KiB is not shown in an error. Selectable fields on which kube-apiserver panics are errors.
//
// # Bounds
//
// kube-apiserver accepts definitions that take minutes or gigabytes to validate, compile, publish or show errors of. Here such a
// definition is refused with 422 at the field that is too large, as Too many or Too long if possible, and not validated further.
// It may not have more than 100 versions, 100 short names, 100 categories, 100 versions of ConversionReview, 100 columns per
// version, 64 keys of a list, or 2 KiB in the path of a webhook. The following bounds hold for all versions together, where equal
// parts count once: the number and the text of rules according to [rules.MaxRules], [rules.MaxRule] and [rules.MaxRuleText],
// regular expressions of [structural.MaxPatternSize] instructions, and 16 MiB for the paths by which errors name schemas. The
// largest definitions of well-known projects are below a tenth of each bound, except that some have 16 columns, and that the text
// of rules is below a quarter; bounds.go has their numbers. A definition out of bounds that another program stored can be changed
// in everything except its spec.
type Validator struct{ compiler *rules.Compiler }

// NewValidator returns a validator that compiles the rules in schemas with compiler.
func NewValidator(compiler *rules.Compiler) Validator { return Validator{compiler} }

// Validate returns the errors of a new definition. From the metadata it validates only that the name is that of the resource, and
// the annotation that protected groups need. For a definition out of bounds it validates nothing else. If ctx ends, the
// validation of rules ends.
func (v Validator) Validate(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	if errs := boundErrors(&crd.Spec); len(errs) > 0 {
		return errs
	}
	errs := nameErrors(crd)
	errs = append(errs, v.judge(ctx, &crd.Spec, tolerance{invalidBundle: true}).specErrors(field.NewPath("spec"))...)
	errs = append(errs, stateErrors(crd)...)
	errs = append(errs, approvalErrors(crd, nil)...)
	errs = append(errs, preserveErrors(crd)...)
	return append(errs, Unsupported(crd)...)
}

// ValidateUpdate returns the errors of the new state of a definition that was old.
//
// A stored definition may violate rules that were introduced later. ValidateUpdate tolerates such a violation in the new
// definition if the old one had it in any of its versions: see [structural.Tolerance]. It also tolerates versions without a
// schema, webhooks that support no known version of ConversionReview, an invalid CABundle, more selectable fields than are
// allowed as long as they do not change, and preserveUnknownFields.
func (v Validator) ValidateUpdate(ctx context.Context, crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	spec := field.NewPath("spec")
	errs := boundErrors(&crd.Spec)
	switch {
	case len(errs) == 0:
		errs = v.judge(ctx, &crd.Spec, toleranceOf(crd, old)).specErrors(spec)
	case sameMeaning().DeepEqual(crd.Spec, old.Spec): // another program has stored the spec
		errs = nil
	default:
		return errs
	}
	if IsTrue(old, apiextensionsv1.Established) {
		errs = append(errs, validation.ValidateImmutableField(crd.Spec.Scope, old.Spec.Scope, spec.Child("scope"))...)
		errs = append(errs, validation.ValidateImmutableField(crd.Spec.Names.Kind, old.Spec.Names.Kind, spec.Child("names", "kind"))...)
	}
	errs = append(errs, validation.ValidateImmutableField(crd.Spec.Group, old.Spec.Group, spec.Child("group"))...)
	errs = append(errs, validation.ValidateImmutableField(crd.Spec.Names.Plural, old.Spec.Names.Plural, spec.Child("names", "plural"))...)
	errs = append(errs, stateErrors(crd)...)
	errs = append(errs, approvalErrors(crd, old)...)
	if !old.Spec.PreserveUnknownFields {
		errs = append(errs, preserveErrors(crd)...)
	}
	return append(errs, newlyUnsupported(crd, old)...)
}

// ValidateStatusUpdate returns the errors of a new status. It validates only the names in it.
func ValidateStatusUpdate(crd, _ *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	return namesErrors(&crd.Status.AcceptedNames, field.NewPath("status", "acceptedNames"))
}

// nameErrors returns an error if the name of a definition is not that of its resource, or is to be generated.
func nameErrors(crd *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	var errs field.ErrorList
	want, metadata := crd.Spec.Names.Plural+"."+crd.Spec.Group, field.NewPath("metadata")
	const rule = `must be spec.names.plural+"."+spec.group`
	if crd.GenerateName != "" && crd.GenerateName != want {
		errs = append(errs, field.Invalid(metadata.Child("generateName"), crd.GenerateName, rule))
	}
	if crd.Name != "" && crd.Name != want {
		errs = append(errs, field.Invalid(metadata.Child("name"), crd.Name, rule))
	}
	return errs
}

// stateErrors validates the status of a definition, also against the spec.
func stateErrors(crd *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	errs := namesErrors(&crd.Status.AcceptedNames, field.NewPath("status", "acceptedNames"))
	return append(errs, storedVersionErrors(crd, field.NewPath("status", "storedVersions"))...)
}

// storedVersionErrors returns errors if the storage version is not among the stored versions, or if a stored version does not
// exist in the spec.
func storedVersionErrors(crd *apiextensionsv1.CustomResourceDefinition, path *field.Path) field.ErrorList {
	stored := crd.Status.StoredVersions
	if len(stored) == 0 {
		return field.ErrorList{field.Invalid(path, stored, "must have at least one stored version")}
	}
	var errs field.ErrorList
	missing := make(map[string]int, len(stored)) // by name: the last index
	for i, name := range stored {
		missing[name] = i
	}
	for _, v := range crd.Spec.Versions {
		if _, ok := missing[v.Name]; !ok && v.Storage {
			errs = append(errs, field.Invalid(path, stored, "must have the storage version "+v.Name))
		}
		delete(missing, v.Name)
	}
	for _, i := range slices.Sorted(maps.Values(missing)) {
		errs = append(errs, field.Invalid(path.Index(i), stored[i], fmt.Sprintf("missing from spec.versions; %[1]s was previously a storage version, "+
			"and must remain in spec.versions until a storage migration ensures no data remains persisted in %[1]s and removes %[1]s from status.storedVersions", stored[i])))
	}
	return errs
}

// approvalErrors returns an error if a definition in a protected group has no approval. An update that does not change the state
// of the approval is tolerated; old is nil on create.
func approvalErrors(crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	if !ProtectedGroup(crd.Spec.Group) {
		return nil
	}
	approval, message := ApprovalOf(crd.Annotations)
	if old != nil {
		if was, _ := ApprovalOf(old.Annotations); was == approval {
			return nil
		}
	}
	at := field.NewPath("metadata", "annotations").Key(apiextensionsv1.KubeAPIApprovedAnnotation)
	switch approval {
	case Approved, Unapproved:
		return nil
	case MissingApproval:
		return field.ErrorList{field.Required(at, message)}
	}
	return field.ErrorList{field.Invalid(at, crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation], message)}
}

// preserveErrors refuses preserveUnknownFields, which only old definitions may have.
func preserveErrors(crd *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	if !crd.Spec.PreserveUnknownFields {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "preserveUnknownFields"), true,
		"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead")}
}
