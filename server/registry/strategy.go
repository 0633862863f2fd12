package registry

import (
	"github.com/keelson-dev/keelson/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Strategy has the rules of one kind. Every field may be zero. The zero Strategy accepts every well-formed object. The functions
// are called concurrently, with objects in the hub version. A function may change an object only if its comment says so. It must
// never change old.
//
// The registry applies the rules for all kinds before it calls a function. On create, the status is cleared and the generation is
// set to 1. An update of the object keeps the old status. An update through /status keeps the old values of everything except the
// status. Only the generation of an updated object is set later: after PrepareForUpdate, it increases with every change outside
// of metadata and status.
type Strategy[T runtime.Object] struct {
	// Permit returns an error if the user of the call must not write the new state of an object, although the request is authorized:
	// a user who may write roles must not write one that allows more than the user may do. old is the state before an update, and
	// the zero value on create. Permit is called after mutating admission and defaults, before all other rules, and again for each
	// attempt of an update. obj is still as the client sent it: metadata that only the server sets, such as the uid, may be missing.
	// The error is returned to the client unchanged. Permit is not called for updates of subresources, and not for calls of the
	// program itself, which have no Verb and whose permissions are not checked (see [For]).
	Permit func(call *Call, obj, old T) error

	// PrepareForCreate may change a new object in place, before validation.
	PrepareForCreate func(call *Call, obj T)
	// PrepareForUpdate may change the new state in place, before validation.
	PrepareForUpdate func(call *Call, obj, old T)
	// PrepareForStatusUpdate is PrepareForUpdate for updates through /status.
	PrepareForStatusUpdate func(call *Call, obj, old T)

	// Validate returns the errors of a new object. Struct tags (package constraint) are checked in addition. The paths of errors
	// begin at the object ("spec.size") and have the field names of the hub. A client that uses another version gets errors with
	// the field names of that version. If the field has different values in the two versions, the error names the hub version. If
	// ValidateUpdate is nil, Validate is also called on updates.
	Validate func(call *Call, obj T) field.ErrorList
	// ValidateUpdate returns the errors of a change. It should call Validate if the rules of Validate apply to updates, too.
	ValidateUpdate func(call *Call, obj, old T) field.ErrorList
	// ValidateStatusUpdate is ValidateUpdate for updates through /status.
	ValidateStatusUpdate func(call *Call, obj, old T) field.ErrorList

	// WarnOnCreate returns texts for Warning headers of a create.
	WarnOnCreate func(call *Call, obj T) []string
	// WarnOnUpdate returns texts for Warning headers of an update.
	WarnOnUpdate func(call *Call, obj, old T) []string

	// Canonicalize changes a valid object to its normal form, in place, before it is stored.
	Canonicalize func(obj T)

	// ValidateName returns the errors of a name, or of a generateName prefix if prefix is true. nil requires a DNS-1123
	// subdomain. k8s.io/apimachinery/pkg/api/validation has other functions.
	ValidateName func(name string, prefix bool) []string

	// GracefulDelete is called when an object is to be deleted. If it returns true, the object gets a deletionTimestamp that is
	// options.GracePeriodSeconds from now. The function may set options.GracePeriodSeconds, and must not leave it nil if it
	// returns true. The object is only deleted at once if the period is 0 and no finalizer keeps the object. If GracefulDelete is
	// nil or returns false, there is no grace period.
	GracefulDelete func(call *Call, obj T, options *metav1.DeleteOptions) bool

	// Terminate marks an object for deletion in place, in a way that is specific to the kind. Namespaces need that, because they
	// are never deleted at once. Each DELETE calls Terminate, after preconditions and admission. If Terminate returns true, the
	// DELETE is complete: the object is stored if Terminate has changed it. If it returns false, the usual DELETE follows. now is
	// the time for a deletionTimestamp.
	Terminate func(call *Call, obj T, now metav1.Time) bool
	// Finalizing reports whether a field of the kind keeps an object from being deleted, as metadata.finalizers do.
	// spec.finalizers of a namespace is an example. An object that is marked for deletion is deleted by the first update after
	// which neither finalizers nor Finalizing keep it.
	Finalizing func(obj T) bool

	// ResetFields are the fields that PrepareForUpdate sets back to their old values. They are dotted paths of JSON names of the
	// hub, without a leading dot ("spec.nodeName"). A client that applies such a field does not become its manager. In other
	// versions, the fields are at the same paths, or at those of their renamed fields. If the kind has a /status, the field
	// status is reset even if ResetFields does not have it.
	ResetFields []string
	// Ratcheting ignores errors of Validate, ValidateUpdate and ValidateStatusUpdate about values that the update did not change.
	// So rules can become stricter while objects are stored: see [Ratchet]. Struct tags (package constraint) are always checked
	// like this.
	Ratcheting bool
	// HubFieldNames gives clients of all versions the paths of the hub in the errors of Validate, ValidateUpdate and
	// ValidateStatusUpdate. kube-apiserver does that for its kinds.
	HubFieldNames bool
	// StatusMetadata makes an update of the status write the metadata, too, as for namespaces in kube-apiserver.
	StatusMetadata bool
	// PlainFinalizers accepts new finalizers whose names have no domain, with neither an error nor a warning, as kube-apiserver
	// does for kinds such as leases.
	PlainFinalizers bool
	// MetadataLast checks the metadata of a new object only if there are no other errors. It is for kinds whose Validate has its
	// own rules for metadata, such as events in kube-apiserver.
	MetadataLast bool
	// LimitAtAny applies the limit of a list whose resourceVersion is 0. Without it such a list is whole, as in kube-apiserver, except
	// for events, which it does not cache.
	LimitAtAny bool
	// NoDependents is for kinds on which no other objects depend, such as events. A DELETE ignores the propagation policy and
	// removes the finalizers of the garbage collector.
	NoDependents bool
	// OwnScaleChecks says that Validate and the other functions check the values at the paths of the scale of untyped objects,
	// with [CheckScale]. Otherwise the registry checks the values before it calls these functions.
	OwnScaleChecks bool
	// TerminateAlone says that the first DELETE does nothing except call Terminate, if Terminate returns true. The propagation
	// policy is then ignored, as for a CustomResourceDefinition.
	TerminateAlone bool
	// NoGeneration does not set metadata.generation. It is for kinds of plain data without a desired state that a controller
	// follows, such as a ConfigMap.
	NoGeneration bool
	// RequireResourceVersion refuses a PUT of a stored object without metadata.resourceVersion (422). Otherwise such a PUT
	// overwrites the object. kubectl replace reads the resourceVersion of the object if its file has none, and is not refused. For
	// kinds without a Go type RequireResourceVersion is always true, as for custom resources in kube-apiserver.
	RequireResourceVersion bool
	// CreateOnUpdate makes a PUT create an object that does not exist, even if the PUT has a resourceVersion. Otherwise the PUT
	// ends with 404.
	CreateOnUpdate bool
	// ReturnDeleted makes DELETE answer with the deleted object, instead of a Status.
	ReturnDeleted bool
}
