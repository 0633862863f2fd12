package admission

import (
	"context"
	"reflect"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request is one change. For an update, plug-ins may be called more than once, each time with the object that is stored at that
// time. Plug-ins are called one after the other, and must not keep a Request. It implements runtime.Readers, so that a plug-in
// can read another kind:
//
//	quota, err := runtime.Read[*Quota](r).Get(ctx, r.Namespace, "quota", runtime.Freshness{})
type Request struct {
	// Operation is the kind of change.
	Operation Operation
	// Kind is the kind of the objects that plug-ins get, in the hub version.
	Kind schema.GroupVersionKind
	// Resource is the resource of these objects, in the hub version.
	Resource schema.GroupVersionResource
	// SentKind is the kind that the client sent, perhaps of another version or group.
	SentKind schema.GroupVersionKind
	// SentResource is the resource that the client named, perhaps of another version or group.
	SentResource schema.GroupVersionResource
	Subresource  string         // "" for the object itself
	Namespace    string         // "" for cluster-scoped resources
	Name         string         // "" for a create with generateName
	Options      runtime.Object // options of the verb, such as *metav1.CreateOptions; must not be changed
	DryRun       bool           // nothing is stored
	User         *authn.User    // never nil
	// Reinvocation is set while the mutators are called once more, because one of them has called Reinvoke.
	Reinvocation bool
	// Policy decides about the request; never nil.
	Policy *Policy
	// OnWarning gets the texts for Warning headers. If it is nil, they are dropped.
	OnWarning func(text string)
	// OnAnnotation gets the annotations for the audit events. If it is nil, they are dropped.
	OnAnnotation func(key, value string)

	again       bool // Reinvoke was called
	object, old lazy
	undo        []func(ctx context.Context)
}

// lazy is an object that is copied when it is first used. The zero lazy has no object.
type lazy struct {
	of     runtime.Object
	copies bool // of must be copied before it is used
}

func (l *lazy) get() runtime.Object {
	if l.copies {
		l.of, l.copies = l.of.DeepCopyObject(), false
	}
	return l.of
}

// Show sets the results of Object and Old. It is for the server, not for plug-ins. If copies is set, Object and Old return deep
// copies. Each of the two copies is made at the first call of its method, and all plug-ins share it. Changes of the copies are
// lost.
func (r *Request) Show(object, old runtime.Object, copies bool) {
	r.object, r.old = lazy{object, copies && object != nil}, lazy{old, copies && old != nil}
}

// Object returns the new object. It is nil for Delete, and for Connect without options. A Mutator may change the object in place;
// changes by a Validator are lost.
func (r *Request) Object() runtime.Object { return r.object.get() }

// SetObject replaces the new object, for a Mutator that does not change it in place.
func (r *Request) SetObject(object runtime.Object) { r.object = lazy{of: object} }

// Old returns the stored object, which must not be changed. It is nil for Create and Connect, and for Delete of an object that is
// not in a registry.
func (r *Request) Old() runtime.Object { return r.old.get() }

// Reinvoke requests that all mutators that handle the request are called once more, after the last of them. As in kube-apiserver,
// it is for a Mutator whose changes the mutators before it must see. During the second round Reinvocation is set, and calls of
// Reinvoke have no effect.
func (r *Request) Reinvoke() { r.again = true }

// Warn sends a text to the client in a Warning header.
func (r *Request) Warn(text string) {
	if r.OnWarning != nil {
		r.OnWarning(text)
	}
}

// Annotate adds an annotation to the audit event of the request. If a key is added again, the first value is kept.
func (r *Request) Annotate(key, value string) {
	if r.OnAnnotation != nil {
		r.OnAnnotation(key, value)
	}
}

// Reader implements runtime.Readers with the Readers of the policy.
func (r *Request) Reader(kind schema.GroupVersionKind) runtime.Reader[runtime.Object] {
	if r.Policy == nil {
		return runtime.ReadKind(nil, kind)
	}
	return runtime.ReadKind(r.Policy.Readers, kind)
}

// KindOf implements runtime.Readers.
func (r *Request) KindOf(t reflect.Type) (schema.GroupVersionKind, bool) {
	if r.Policy == nil || r.Policy.Readers == nil {
		return schema.GroupVersionKind{}, false
	}
	return r.Policy.Readers.KindOf(t)
}

// OnFailure registers a function that undoes a charge of a plug-in for this attempt, such as a count against a quota. The
// functions are called, the last first, if the attempt has definitely failed: another plug-in, a validation or the storage has
// refused it, or it is retried with another state of the object. If the storage does not report whether the change was stored,
// the functions are not called. The charge then remains until the plug-in compares its counts with the stored objects. The
// context that undo gets does not end with the request.
func (r *Request) OnFailure(undo func(ctx context.Context)) { r.undo = append(r.undo, undo) }

// Charges returns the number of functions that OnFailure has registered. It is for the server: to keep the charges that all
// attempts share, the server passes their number to Undo.
func (r *Request) Charges() int { return len(r.undo) }

// Undo calls the functions that OnFailure has registered, the last first, and removes them. The first kept functions stay
// registered and are not called. ctx may have ended.
func (r *Request) Undo(ctx context.Context, kept int) {
	ctx = context.WithoutCancel(ctx)
	for i := len(r.undo) - 1; i >= kept; i-- {
		r.undo[i](ctx)
		r.undo = r.undo[:i]
	}
}
