package definition

import (
	"slices"

	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Condition returns a pointer to the condition of a type inside crd, or nil if there is none.
func Condition(crd *apiextensionsv1.CustomResourceDefinition, t apiextensionsv1.CustomResourceDefinitionConditionType) *apiextensionsv1.CustomResourceDefinitionCondition {
	for i := range crd.Status.Conditions {
		if crd.Status.Conditions[i].Type == t {
			return &crd.Status.Conditions[i]
		}
	}
	return nil
}

// IsTrue reports whether the condition of a type is True.
func IsTrue(crd *apiextensionsv1.CustomResourceDefinition, t apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	c := Condition(crd, t)
	return c != nil && c.Status == apiextensionsv1.ConditionTrue
}

// IsServed reports whether the status of crd says that its API is served: its names are accepted, or were when it was
// established.
func IsServed(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return IsTrue(crd, apiextensionsv1.NamesAccepted) || IsTrue(crd, apiextensionsv1.Established)
}

// IsTerminating reports whether crd is being deleted, so that none of its objects may be created any more.
func IsTerminating(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.DeletionTimestamp != nil || IsTrue(crd, apiextensionsv1.Terminating)
}

// SetCondition sets status, reason and message of the condition of c's type, in place, and reports whether that changed anything.
// It sets lastTransitionTime to now if the status changes, or if there was no time. A condition keeps its observedGeneration:
// like kube-apiserver, this package writes none and keeps those that others wrote.
func SetCondition(crd *apiextensionsv1.CustomResourceDefinition, c apiextensionsv1.CustomResourceDefinitionCondition, now metav1.Time) bool {
	c.LastTransitionTime = now
	old := Condition(crd, c.Type)
	if old == nil {
		crd.Status.Conditions = append(crd.Status.Conditions, c)
		return true
	}
	c.ObservedGeneration = old.ObservedGeneration
	if old.Status == c.Status && !old.LastTransitionTime.IsZero() {
		c.LastTransitionTime = old.LastTransitionTime
	}
	changed := *old != c
	*old = c
	return changed
}

// RemoveCondition removes the condition of a type, in place, and reports whether there was one.
func RemoveCondition(crd *apiextensionsv1.CustomResourceDefinition, t apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	before := len(crd.Status.Conditions)
	crd.Status.Conditions = slices.DeleteFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool { return c.Type == t })
	return len(crd.Status.Conditions) != before
}

// SetEstablished sets the condition Established to True, in place, and reports whether that changed anything. If the CABundle of
// the webhook is invalid, it calls SetNotServed instead.
func SetEstablished(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) bool {
	if hasInvalidBundle(crd) {
		return SetNotServed(crd, "", now)
	}
	return SetCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue,
		Reason: "InitialNamesAccepted", Message: "the initial names have been accepted",
	}, now)
}

// These are the reasons of SetNotServed. kube-apiserver has only the second one.
const (
	reasonNotServed     = "NotServed"
	reasonInvalidBundle = "InvalidCABundle"
)

// SetNotServed sets the condition Established to False with the message why, in place, and reports whether that changed anything.
// It does so only if Established is not True. An invalid CABundle takes precedence over why.
func SetNotServed(crd *apiextensionsv1.CustomResourceDefinition, why string, now metav1.Time) bool {
	if IsTrue(crd, apiextensionsv1.Established) {
		return false
	}
	c := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Reason: reasonNotServed, Message: why,
	}
	if hasInvalidBundle(crd) {
		c.Reason, c.Message = reasonInvalidBundle, "The conversion webhook CABundle is invalid"
	}
	return SetCondition(crd, c, now)
}

// IsNotServed reports whether crd has the condition that SetNotServed sets.
func IsNotServed(crd *apiextensionsv1.CustomResourceDefinition) bool {
	c := Condition(crd, apiextensionsv1.Established)
	return c != nil && c.Status == apiextensionsv1.ConditionFalse && (c.Reason == reasonNotServed || c.Reason == reasonInvalidBundle)
}

// SetStructural updates the condition NonStructuralSchema, in place, and reports whether that changed anything. The condition
// exists only while a schema is not structural, which Validate refuses.
func SetStructural(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) bool {
	var errs field.ErrorList
	if crd.Spec.PreserveUnknownFields {
		errs = append(errs, field.Invalid(field.NewPath("spec", "preserveUnknownFields"), true, "must be false"))
	}
	for i := range crd.Spec.Versions {
		at := field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
		errs = append(errs, structural.NonStructural(at, SchemaOf(&crd.Spec.Versions[i]))...)
	}
	if len(errs) == 0 {
		return RemoveCondition(crd, apiextensionsv1.NonStructuralSchema)
	}
	return SetCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NonStructuralSchema, Status: apiextensionsv1.ConditionTrue,
		Reason: "Violations", Message: errs.ToAggregate().Error(),
	}, now)
}

// Terminate applies the first DELETE to a definition, in place. It sets a deletionTimestamp, the finalizer that stays until the
// objects are gone, and the condition Terminating. For a later DELETE it returns false and changes nothing: that is handled as
// for any object.
func Terminate(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) bool {
	if crd.DeletionTimestamp != nil {
		return false
	}
	crd.DeletionTimestamp = &now
	if !slices.Contains(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		crd.Finalizers = append(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	SetTerminating(crd, DeletionPending, "", now)
	return true
}

// Deletion is the stage of the deletion of a definition's objects. It is the reason of the condition Terminating.
type Deletion string

// These are the stages of a deletion. The condition is True until nothing is left to delete.
const (
	DeletionPending    Deletion = "InstanceDeletionPending"    // the deletion will begin soon
	DeletionInProgress Deletion = "InstanceDeletionInProgress" // objects are being deleted
	DeletionFailed     Deletion = "InstanceDeletionFailed"     // a deletion failed; the detail says which
	DeletionCheck      Deletion = "InstanceDeletionCheck"      // the definition was never established
	DeletionCompleted  Deletion = "InstanceDeletionCompleted"  // all objects are deleted
	NeverEstablished   Deletion = "NeverEstablished"           // there never were objects
	OverlapsBuiltIn    Deletion = "OverlappingBuiltInResource" // something else that is served has the objects
)

// SetTerminating sets the condition Terminating, in place, and reports whether that changed anything. detail is used only for
// DeletionFailed and DeletionCheck.
func SetTerminating(crd *apiextensionsv1.CustomResourceDefinition, stage Deletion, detail string, now metav1.Time) bool {
	c := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue, Reason: string(stage),
	}
	switch stage {
	case DeletionPending:
		c.Message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
	case DeletionInProgress:
		c.Message = "CustomResource deletion is in progress"
	case DeletionFailed:
		c.Message = detail
	case DeletionCheck:
		c.Message = "could not confirm zero CustomResources remaining: " + detail
	case DeletionCompleted:
		c.Status, c.Message = apiextensionsv1.ConditionFalse, "removed all instances"
	case NeverEstablished:
		c.Status, c.Message = apiextensionsv1.ConditionFalse, "resource was never established"
	case OverlapsBuiltIn:
		c.Status, c.Message = apiextensionsv1.ConditionFalse, "instances overlap with built-in resources in storage"
	}
	return SetCondition(crd, c, now)
}
