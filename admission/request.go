package admission

import (
	"context"
	"reflect"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request is one change as admission sees it. For updates it may be shown more than once, each time with what is
// stored then. Plug-ins are asked one after the other, and must not keep a Request. It implements runtime.Readers, so that
// a plug-in reads another kind in one line:
//
//	quota, err := runtime.Read[*Quota](r).Get(ctx, r.Namespace, "quota", runtime.Freshness{})
type Request struct {
	Operation Operation
	// Kind and Resource are those of the objects that plug-ins are shown, which are of the hub version.
	Kind     schema.GroupVersionKind
	Resource schema.GroupVersionResource
	// SentKind and SentResource are those that the client has named, of another version or group perhaps.
	SentKind     schema.GroupVersionKind
	SentResource schema.GroupVersionResource
	Subresource  string
	Namespace    string
	Name         string         // "" for a create with generateName
	Options      runtime.Object // the verb's options, such as *metav1.CreateOptions; not to be changed
	DryRun       bool
	User         *authn.User // never nil
	// Reinvocation says that the mutators are asked once more, because one of them has called Reinvoke.
	Reinvocation bool
	// Policy is what decides about the request; never nil.
	Policy *Policy
	// OnWarning gets texts for Warning headers, and OnAnnotation annotations of the audit event. nil drops them. A server
	// drops annotations as long as it makes no audit events.
	OnWarning    func(text string)
	OnAnnotation func(key, value string)

	again       bool // Reinvoke was called
	object, old lazy
	undo        []func(ctx context.Context)
}

// lazy is an object that is copied when somebody looks at it. The zero lazy is no object.
type lazy struct {
	of     runtime.Object
	copies bool // of is not to be shown itself
}

func (l *lazy) get() runtime.Object {
	if l.copies {
		l.of, l.copies = l.of.DeepCopyObject(), false
	}
	return l.of
}

// Show sets what Object and Old return from now on. With copies they return copies, one for all plug-ins, made when the
// first looks: what plug-ins do to them is lost.
func (r *Request) Show(object, old runtime.Object, copies bool) {
	r.object, r.old = lazy{object, copies && object != nil}, lazy{old, copies && old != nil}
}

// Object returns the new object: nil for Delete, and for Connect to what has no options. A Mutator may change it in place;
// what a Validator changes is lost.
func (r *Request) Object() runtime.Object { return r.object.get() }

// SetObject replaces the new object, for a Mutator that does not change it in place.
func (r *Request) SetObject(object runtime.Object) { r.object = lazy{of: object} }

// Old returns the stored object, which is not to be changed: nil for Create and Connect, and for Delete of an object that
// no registry keeps.
func (r *Request) Old() runtime.Object { return r.old.get() }

// Reinvoke has all mutators that handle the request asked once more, after the last of them: for a Mutator whose changes those
// before it have to see, as in kube-apiserver. During that Reinvocation is set, and calling Reinvoke has no effect.
func (r *Request) Reinvoke() { r.again = true }

// Warn shows a text to the client in a Warning header.
func (r *Request) Warn(text string) {
	if r.OnWarning != nil {
		r.OnWarning(text)
	}
}

// Annotate adds an annotation to the audit event of the request. The first value of a key stays.
func (r *Request) Annotate(key, value string) {
	if r.OnAnnotation != nil {
		r.OnAnnotation(key, value)
	}
}

// Reader implements runtime.Readers, by those of the policy.
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

// OnFailure registers what undoes a charge that a plug-in has made for this attempt at the change, such as a count against a
// quota. It is called, the last first, if the attempt has definitely failed: another plug-in or a validation has refused it, the
// storage has, or it is tried again with another state of the object. If the storage does not tell whether the change was
// made, it is not called, and the charge stays until the plug-in compares its counts with what is stored. The context that
// undo gets does not end with the request.
func (r *Request) OnFailure(undo func(ctx context.Context)) { r.undo = append(r.undo, undo) }

// Charges returns how many charges there are, for Undo.
func (r *Request) Charges() int { return len(r.undo) }

// Undo undoes the charges but for the first kept, the last first.
func (r *Request) Undo(ctx context.Context, kept int) {
	ctx = context.WithoutCancel(ctx)
	for i := len(r.undo) - 1; i >= kept; i-- {
		r.undo[i](ctx)
		r.undo = r.undo[:i]
	}
}
