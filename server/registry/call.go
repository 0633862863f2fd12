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

// Call is one request to a registry, or to whatever else serves a resource: who makes it, what for, and what decides about
// it. A registry is told everything by the Call, and reads nothing from a context but its end.
//
// A Call is the context of the request: it ends when the request does, and is passed on to whatever takes a context. So a
// verb, a strategy and an update function have one argument for both. NewCall finds the Call that a context is, or is derived
// from; nothing else is taken from a context.
//
// A Call is for one request and the goroutine that serves it. It implements runtime.Readers, so that a strategy reads another
// kind in one line:
//
//	airport, err := runtime.Read[*Airport](call).Get(call, "", flight.Spec.From, runtime.Freshness{})
//	if apierrors.IsNotFound(err) {
//		return field.ErrorList{field.NotFound(field.NewPath("spec", "from"), flight.Spec.From)}
//	}
//
// KeepsSent, KeepSent, KeepsForms, HasForms and InVersion are for handlers, which convert what a request sends.
type Call struct {
	context.Context
	// Attributes are what the request was authorized for. User is never nil: a call without one is refused. Namespace is
	// where the objects are, "" for a cluster-scoped resource and for all namespaces. APIGroup and APIVersion are those that
	// the client speaks, "" for the hub's. There are no selectors: those of a list are in its options. A program's own call
	// needs User and Namespace and nothing else.
	authz.Attributes
	// DryRun says that nothing is to be stored. In the Call that a strategy, an update function or a Storage behind admission
	// gets it is also set where the options of the verb say so.
	DryRun bool
	// CreateOnUpdate has an update create an object that does not exist, whatever the kind's rule is: a server-side apply
	// does. The update function is then called with nil.
	CreateOnUpdate bool
	// Policy decides about the request; nil: the registry's Options.Policy is asked. It is never nil in the Call that a strategy
	// or an update function gets.
	Policy *admission.Policy
	// OnWarning gets texts for Warning headers, and OnAnnotation annotations of the audit event; nil drops them. They may be
	// called concurrently.
	OnWarning    func(text string)
	OnAnnotation func(key, value string)
	// Account is told of each state of an object that an update or a deletion decodes how many bytes that has, before it is
	// decoded; nil is nobody. An error of it ends the verb.
	Account storage.Account

	sent  *sent
	forms *forms
}

// NewCall returns the call of a program's own, as a user in a namespace ("" for a cluster-scoped resource, and for all
// namespaces). See authn.System and authn.ServiceAccount for who that may be. If ctx is a Call, or derived from one, of a
// request that needs another, the new one is decided by the same policy, stores nothing if the request does not, and its
// warnings and annotations are those of the request.
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

// callKey is the key under which a Call has itself.
type callKey struct{}

// Value implements context.Context. The values are those of the Context, but for one by which NewCall finds the Call.
func (c *Call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// WithContext returns the call with another context.
func (c *Call) WithContext(ctx context.Context) *Call {
	if ctx == c || ctx == c.Context {
		return c
	}
	other := *c
	other.Context = ctx
	return &other
}

// In returns the call in another namespace.
func (c *Call) In(namespace string) *Call {
	if c.Namespace == namespace {
		return c
	}
	other := *c
	other.Namespace = namespace
	return &other
}

// Warn shows a text to the client in a Warning header.
func (c *Call) Warn(text string) {
	if c.OnWarning != nil && text != "" {
		c.OnWarning(text)
	}
}

// Annotate adds an annotation to the audit event of the request. The first value of a key stays.
func (c *Call) Annotate(key, value string) {
	if c.OnAnnotation != nil {
		c.OnAnnotation(key, value)
	}
}

// Reader implements runtime.Readers, by those of the policy.
func (c *Call) Reader(kind schema.GroupVersionKind) runtime.Reader[runtime.Object] {
	return runtime.ReadKind(c.readers(), kind)
}

// KindOf implements runtime.Readers.
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

// errNobody refuses a call without a user.
var errNobody = errors.New("a call without a user is refused: set Call.User, for a program's own calls to authn.System() for one")

// begin returns a call to a registry completed with the policy, unless it has one, and with what the options of the verb say. The
// caller's own stays as it is.
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

// dryRun returns the option of a verb that is part of the call: values, unless the call is a dry run for another reason.
func (c *Call) dryRun(values []string) []string {
	if c.DryRun && !isDryRun(values) {
		return []string{metav1.DryRunAll}
	}
	return values
}

// admission returns the frame of an admission request.
func (c *Call) admission(op admission.Operation, name string) *admission.Request {
	return &admission.Request{
		Operation: op, Name: name, DryRun: c.DryRun, User: c.User, Policy: c.Policy, OnWarning: c.OnWarning, OnAnnotation: c.OnAnnotation,
		SentResource: schema.GroupVersionResource{Group: c.APIGroup, Version: c.APIVersion, Resource: c.Resource},
	}
}

// updating returns the call for what an update does: the updates that strategies, admission and update functions make of other
// objects with it are their own.
func (c *Call) updating() *Call {
	if !c.CreateOnUpdate {
		return c
	}
	other := *c
	other.CreateOnUpdate = false
	return &other
}

// sent holds what a request has sent, for those who judge it in the version that it came in.
type sent struct {
	mu       sync.Mutex // guards all below
	obj, hub runtime.Object
}

// KeepsSent has the call keep what KeepSent is given from now on: for a write in a version whose objects may have other fields
// than those of the hub (see runtime.Kind.VersionsDiffer). Converted back, the object would have what the conversion adds,
// and not what it leaves out, and would not be judged as it was sent.
func (c *Call) KeepsSent() {
	if c.sent == nil {
		c.sent = &sent{}
	}
}

// KeepSent keeps obj, which a request wants stored, in the request's version, and hub, which was made of it. Both are
// copied, and replace what was kept before: an update may be tried several times. Without KeepsSent it does nothing.
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

// Sent returns what was kept last, nil when nothing was. It is not to be changed. What is stored in the end may be another
// object: defaults, admission, the registry and its strategy change what was made of it.
func (c *Call) Sent() (obj, hub runtime.Object) {
	s := c.sent
	if s == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.obj, s.hub
}

// NewDecidedCall is NewCall for a call that may be of a storage which asks for no policy itself, as a Registry does: policy decides
// about it, or, within another call, the policy of that.
func NewDecidedCall(ctx context.Context, user *authn.User, namespace string, policy admission.Source) *Call {
	call := NewCall(ctx, user, namespace)
	if call.Policy == nil {
		call.Policy = admission.PolicyOf(ctx, policy)
	}
	return call
}
