package registry

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Call is one request to a registry, or to another storage of a resource. It contains the user, the namespace, the version that
// the client uses, the policy of the request, and functions that receive warnings and audit annotations. A registry takes all of
// this from the fields of the Call. From its Context it takes only the deadline and the cancellation.
//
// A Call is also the context of the request: it ends when the request ends, and can be passed to any function that needs a
// context. Therefore the functions of a Storage or a Strategy, and update functions, have a Call as their first argument and no
// separate context. If a context is a Call, or is derived from one, NewCall finds that Call.
//
// A Call is for one request and for the goroutine that serves it. A Call implements runtime.Readers, so that a strategy can read
// an object of another kind in one line:
//
//	airport, err := runtime.Read[*Airport](call).Get(call, "", flight.Spec.From, runtime.Freshness{})
//	if apierrors.IsNotFound(err) {
//		return field.ErrorList{field.NotFound(field.NewPath("spec", "from"), flight.Spec.From)}
//	}
//
// The methods KeepsSent, KeepSent, KeepsForms, HasForms and InVersion are only for handlers, which convert the objects of
// requests.
type Call struct {
	// Context ends when the request ends.
	context.Context
	// Attributes are the attributes that the request was authorized for. User must not be nil: a registry refuses such a Call.
	// Namespace is the namespace of the objects, or "" for a cluster-scoped resource and for all namespaces. APIGroup and
	// APIVersion are those that the client uses; "" is the hub. The attributes have no selectors: the selectors of a list are in
	// its options. A call of the program itself needs only User and Namespace.
	authz.Attributes
	// DryRun says that nothing must be stored. In the Call that a strategy, an update function or a Storage behind admission
	// receives, it is also true if the options of the verb have DryRun.
	DryRun bool
	// CreateOnUpdate makes an update create an object that does not exist, even if Strategy.CreateOnUpdate is false. It is set
	// for a server-side apply. The update function is then called with nil.
	CreateOnUpdate bool
	// Patch says that update functions make the new state of an object by a patch. A uid in it that is not that of the object is then a
	// mistake in the metadata (422), as in kube-apiserver. Without Patch it is a precondition that fails (409).
	Patch bool
	// Policy is the policy of the request; nil means that of the registry's Options.Policy. It is never nil in the Call that a
	// strategy or an update function receives.
	Policy *admission.Policy
	// OnWarning receives texts for Warning headers; nil drops them. It may be called concurrently.
	OnWarning func(text string)
	// OnAnnotation receives annotations of the audit event; nil drops them. It may be called concurrently.
	OnAnnotation func(key, value string)
	// Account is called with the size in bytes of each state of an object that an update or a deletion decodes, before it is
	// decoded. If it returns an error, the verb ends with that error. A nil Account is not called.
	Account storage.Account

	sent  *sent
	forms *forms
}

// NewCall returns a call of the program itself, as a user in a namespace. namespace is "" for a cluster-scoped resource and for
// all namespaces. For the user, see authn.System and authn.ServiceAccount.
//
// If ctx is a Call, or is derived from one, the new call belongs to the same request: it has the same policy, is a dry run if the
// request is one, and adds its warnings and annotations to those of the request.
func NewCall(ctx context.Context, user *authn.User, namespace string) *Call {
	c := &Call{Context: ctx, Attributes: authz.Attributes{User: user, ResourceRequest: true, Namespace: namespace}}
	if of, ok := ctx.Value(callKey{}).(*Call); ok {
		if ctx == of {
			c.Context = of.Context
		}
		c.DryRun, c.Policy, c.OnWarning, c.OnAnnotation = of.DryRun, of.Policy, of.OnWarning, of.OnAnnotation
	}
	return c
}

// callKey is the context key under which a Call stores itself.
type callKey struct{}

// Value implements context.Context. The values are those of the Context, with one more by which NewCall finds the Call.
func (c *Call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// WithContext returns a copy of the call with another context.
func (c *Call) WithContext(ctx context.Context) *Call {
	if ctx == c || ctx == c.Context {
		return c
	}
	other := *c
	other.Context = ctx
	return &other
}

// In returns a copy of the call in another namespace.
func (c *Call) In(namespace string) *Call {
	if c.Namespace == namespace {
		return c
	}
	other := *c
	other.Namespace = namespace
	return &other
}

// Warn sends a text to the client in a Warning header. It does nothing if the text is "".
func (c *Call) Warn(text string) {
	if c.OnWarning != nil && text != "" {
		c.OnWarning(text)
	}
}

// Annotate adds an annotation to the audit event of the request. A second value for the same key is ignored.
func (c *Call) Annotate(key, value string) {
	if c.OnAnnotation != nil {
		c.OnAnnotation(key, value)
	}
}

// Reader implements runtime.Readers. It returns a reader of the call's policy.
func (c *Call) Reader(kind schema.GroupVersionKind) runtime.Reader[runtime.Object] {
	return runtime.ReadKind(c.readers(), kind)
}

// KindOf implements runtime.Readers. It uses the readers of the call's policy.
func (c *Call) KindOf(t reflect.Type) (schema.GroupVersionKind, bool) {
	if r := c.readers(); r != nil {
		return r.KindOf(t)
	}
	return schema.GroupVersionKind{}, false
}

func (c *Call) readers() runtime.Readers {
	if c.Policy == nil {
		return nil
	}
	return c.Policy.Readers
}

// errNobody is returned for a call without a user.
var errNobody = errors.New("a call without a user is refused: set Call.User, for a program's own calls to authn.System() for one")

// begin returns the call with a policy and with the dry run of the verb's options. It does not change c, and returns a copy if
// necessary.
func (c *Call) begin(policy admission.Source, dryRun []string) (*Call, error) {
	if c == nil || c.User == nil {
		return nil, apierrors.NewInternalError(errNobody)
	}
	dry := c.DryRun || isDryRun(dryRun)
	if dry == c.DryRun && c.Policy != nil {
		return c, nil
	}
	other := *c
	other.DryRun = dry
	if other.Policy == nil {
		other.Policy = admission.PolicyOf(c.Context, policy)
	}
	return &other, nil
}

// dryRun returns the dryRun option for the next storage: values, or All if the call is a dry run but values are empty.
func (c *Call) dryRun(values []string) []string {
	if c.DryRun && !isDryRun(values) {
		return []string{metav1.DryRunAll}
	}
	return values
}

// admission returns an admission request with the fields that a call has.
func (c *Call) admission(op admission.Operation, name string) *admission.Request {
	return &admission.Request{
		Operation: op, Name: name, DryRun: c.DryRun, User: c.User, Policy: c.Policy, OnWarning: c.OnWarning, OnAnnotation: c.OnAnnotation,
		SentResource: schema.GroupVersionResource{Group: c.APIGroup, Version: c.APIVersion, Resource: c.Resource},
	}
}

// updating returns the call without CreateOnUpdate and Patch. Strategies, admission and update functions get it, so that their own
// updates of other objects do not create objects, and are no patches.
func (c *Call) updating() *Call {
	if !c.CreateOnUpdate && !c.Patch {
		return c
	}
	other := *c
	other.CreateOnUpdate, other.Patch = false, false
	return &other
}

// sent is the object that a request has sent, for admission in the version of the request.
type sent struct {
	mu       sync.Mutex // guards all below
	obj, hub runtime.Object
}

// KeepsSent makes the call keep the objects of later calls of KeepSent. Handlers call it for a write in a version whose objects
// may have other fields than those of the hub (see runtime.Kind.VersionsDiffer). An object that is converted to the hub and back
// can have more or fewer fields than the object that was sent, and admission would review the wrong one.
func (c *Call) KeepsSent() {
	if c.sent == nil {
		c.sent = &sent{}
	}
}

// KeepSent keeps copies of obj, which the request sends in its version, and of hub, which was converted from obj. They replace the
// objects that were kept before: an update may be tried several times. Without KeepsSent it does nothing.
func (c *Call) KeepSent(obj, hub runtime.Object) {
	s := c.sent
	if s == nil {
		return
	}
	obj, hub = obj.DeepCopyObject(), hub.DeepCopyObject()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.obj, s.hub = obj, hub
}

// Sent returns the objects of the last KeepSent, or nil if there are none. They must not be changed. The stored object may be
// different: defaults, admission, the registry and its strategy change it.
func (c *Call) Sent() (obj, hub runtime.Object) {
	s := c.sent
	if s == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.obj, s.hub
}

// NewDecidedCall is NewCall for a call to a Storage that is not a Registry, and so has no policy for calls without one. The new
// call has the policy of the Call that ctx is derived from or, if there is none, the current one of policy.
func NewDecidedCall(ctx context.Context, user *authn.User, namespace string, policy admission.Source) *Call {
	call := NewCall(ctx, user, namespace)
	if call.Policy == nil {
		call.Policy = admission.PolicyOf(ctx, policy)
	}
	return call
}
