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

// Validator judges definitions. It may be used concurrently. One that [NewValidator] has not made cannot be used.
type Validator struct{ compiler *rules.Compiler }

// NewValidator returns a validator that compiles the rules in schemas with compiler.
func NewValidator(compiler *rules.Compiler) Validator { return Validator{compiler} }

// Validate returns what is wrong with a new definition. Of the metadata it judges only that the name is that of the
// resource, and the annotation that protected groups need. Of one that is out of bounds it judges nothing else. ctx ends the
// judgement of rules.
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

// ValidateUpdate returns what is wrong with the new state of a definition that was old.
func (v Validator) ValidateUpdate(ctx context.Context, crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	spec := field.NewPath("spec")
	errs := boundErrors(&crd.Spec)
	switch {
	case len(errs) == 0:
		errs = v.judge(ctx, &crd.Spec, toleranceOf(crd, old)).specErrors(spec)
	case sameMeaning().DeepEqual(crd.Spec, old.Spec): // another server has stored it
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

// ValidateStatusUpdate returns what is wrong with a new status of a definition that was old: only the names in it are judged.
func ValidateStatusUpdate(crd, _ *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	return namesErrors(&crd.Status.AcceptedNames, field.NewPath("status", "acceptedNames"))
}

// nameErrors says that a definition is called as its resource; a generated name cannot be.
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

// stateErrors judges the status of a definition by itself and by the spec.
func stateErrors(crd *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	errs := namesErrors(&crd.Status.AcceptedNames, field.NewPath("status", "acceptedNames"))
	return append(errs, storedVersionErrors(crd, field.NewPath("status", "storedVersions"))...)
}

// storedVersionErrors says that the storage version is among those that are stored, and that all those still exist.
func storedVersionErrors(crd *apiextensionsv1.CustomResourceDefinition, path *field.Path) field.ErrorList {
	stored := crd.Status.StoredVersions
	if len(stored) == 0 {
		return field.ErrorList{field.Invalid(path, stored, "must have at least one stored version")}
	}
	var errs field.ErrorList
	missing := make(map[string]int, len(stored)) // by its last place
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

// approvalErrors asks definitions in groups of the Kubernetes community for their approval, unless an update does not make it
// worse or better; old is nil on create.
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

// preserveErrors refuses what definitions of the first days had.
func preserveErrors(crd *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	if !crd.Spec.PreserveUnknownFields {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "preserveUnknownFields"), true,
		"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead")}
}
