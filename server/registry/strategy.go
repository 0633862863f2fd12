package registry

import (
	"github.com/keelson-dev/keelson/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Strategy is what makes a kind different from others. Every field may be nil, and the zero Strategy is a kind
// whose every well-formed object is valid. The functions are called concurrently. They get objects in the hub
// version, of their own to change only where it says so; old is never to be changed.
//
// Before a function is called the registry has applied the rules for all kinds: on create the status is dropped
// and generation is 1; on update through the main endpoint the status is the old one and generation grows with
// every change outside metadata and status; on update through /status everything but the status is the old.
type Strategy[T runtime.Object] struct {
	// PrepareForCreate completes a new object in place, before validation.
	PrepareForCreate func(call *Call, obj T)
	// PrepareForUpdate completes the new state in place, before validation.
	PrepareForUpdate func(call *Call, obj, old T)
	// PrepareForStatusUpdate is PrepareForUpdate for /status.
	PrepareForStatusUpdate func(call *Call, obj, old T)

	// Validate finds what is wrong with a new object, beyond what its struct tags say (package constraint); the paths
	// begin at the object ("spec.size"). It is also called on updates when ValidateUpdate is nil.
	Validate func(call *Call, obj T) field.ErrorList
	// ValidateUpdate finds what is wrong with a change; call Validate from it if that should hold too.
	ValidateUpdate func(call *Call, obj, old T) field.ErrorList
	// ValidateStatusUpdate is ValidateUpdate for /status.
	ValidateStatusUpdate func(call *Call, obj, old T) field.ErrorList

	// WarnOnCreate and WarnOnUpdate return texts for Warning headers.
	WarnOnCreate func(call *Call, obj T) []string
	WarnOnUpdate func(call *Call, obj, old T) []string

	// Canonicalize brings a valid object into its normal form, in place, before it is stored.
	Canonicalize func(obj T)

	// ValidateName finds what is wrong with a name, or with a generateName prefix; nil asks for a DNS-1123
	// subdomain. k8s.io/apimachinery/pkg/api/validation has others.
	ValidateName func(name string, prefix bool) []string

	// GracefulDelete is asked when an object is to be deleted and may set options.GracePeriodSeconds; true marks
	// the object for deletion after that many seconds instead of deleting it. nil deletes at once.
	GracefulDelete func(call *Call, obj T, options *metav1.DeleteOptions) bool

	// Terminate marks an object for deletion in a way of its kind, in place, as namespaces do, which are never gone at once.
	// It is called by every DELETE, after preconditions and admission. true: that is all, and the object is stored as it is
	// now, if it has changed; false: the usual DELETE goes on. now is the time for a deletionTimestamp.
	Terminate func(call *Call, obj T, now metav1.Time) bool
	// Finalizing reports whether something of the kind's own keeps an object, as metadata.finalizers do: spec.finalizers
	// of a namespace. An object that is marked for deletion goes with the update after which nothing keeps it.
	Finalizing func(obj T) bool

	// ResetFields are fields that PrepareForUpdate sets back to what they were, as dotted paths of JSON names
	// of the hub ("spec.nodeName", without a leading dot): whoever applies them does not manage them. Other versions have
	// them at the same paths, or where their renamed fields say. The status is always one of them where there is a /status.
	ResetFields []string
	// Ratcheting leaves errors out that Validate, ValidateUpdate and ValidateStatusUpdate report on an update about
	// values the update did not change, so that rules can become stricter while objects are stored: see [Ratchet].
	// The rules in struct tags (package constraint) always do that.
	Ratcheting bool
	// StatusMetadata has an update of the status write labels, annotations, finalizers and owners too, as that of a
	// namespace does in kube-apiserver.
	StatusMetadata bool
	// PlainFinalizers takes new finalizers without a domain, without refusing them or a warning, as kube-apiserver does
	// for kinds such as leases.
	PlainFinalizers bool
	// OwnScaleChecks says that Validate and its like judge what untyped objects have at the paths of their scale, by
	// [CheckScale]: otherwise that is done before they are called.
	OwnScaleChecks bool
	// TerminateAlone says that Terminate is all that the first DELETE does: the policy of deletion that it names is not looked
	// at, as that of a CustomResourceDefinition.
	TerminateAlone bool
	// NoGeneration leaves metadata.generation alone, as kinds do that are plain data, without a desired state
	// that a controller follows (a ConfigMap).
	NoGeneration bool
	// RequireResourceVersion refuses a PUT without metadata.resourceVersion (422), which otherwise overwrites
	// whatever is stored. Kinds without a Go type always do, as custom resources do in kube-apiserver.
	RequireResourceVersion bool
	// CreateOnUpdate lets PUT create an object that does not exist, whatever resourceVersion it names; otherwise it is 404.
	CreateOnUpdate bool
	// ReturnDeleted makes DELETE answer with the deleted object instead of a Status.
	ReturnDeleted bool
}
