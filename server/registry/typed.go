package registry

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Typed calls a registry in process, with objects of the registry's Go type. The rules, the strategy and admission are the same
// as over HTTP. Make one with [For]. All methods may be called concurrently. Errors are those of the Registry.
//
// The namespace of every method is "" for a cluster-scoped kind. Objects that are passed in are copied. The caller may change
// objects that are returned. Without a field manager (see [Typed.As]) the methods record no managers of fields:
// metadata.managedFields stays as it is, unless the caller changes it.
//
// Objects of a kind without a Go type are *unstructured.Unstructured. An object without kind and apiVersion is accepted as one of
// this kind. The objects may contain any values that can be written as JSON, such as int.
type Typed[T runtime.Object] struct {
	registry *Registry
	user     *authn.User
	owner    *owner // nil: the writes own no fields
}

// For returns a Typed for calls of a user. Admission and strategies see that user, but the user's permissions are not checked.
// For the work of the program itself, user can be authn.System() or an authn.ServiceAccount. T must be the Go type of the
// registry's kind.
func For[T runtime.Object](r *Registry, user *authn.User) (*Typed[T], error) {
	switch {
	case r == nil:
		return nil, errors.New("registry: For: the registry is nil")
	case user == nil:
		return nil, errors.New("registry: For: the user is nil; a program's own work is done as authn.System(), for one")
	}
	if want, got := reflect.PointerTo(r.kind.Type), reflect.TypeFor[T](); want != got {
		return nil, fmt.Errorf("registry of %s: objects are %v, not %v", r.kind.GVK, want, got)
	}
	return &Typed[T]{registry: r, user: user}, nil
}

// call returns the call of a method.
func (t *Typed[T]) call(ctx context.Context, namespace string) *Call {
	return NewCall(ctx, t.user, namespace)
}

// Get returns one object. It reads the latest state.
func (t *Typed[T]) Get(ctx context.Context, namespace, name string) (T, error) {
	return t.decode(t.registry.GetRecord(t.call(ctx, namespace), name, storage.Read{}))
}

// Create stores a new object and returns it as stored.
func (t *Typed[T]) Create(ctx context.Context, namespace string, obj T) (T, error) {
	own, err := t.registry.copied(obj)
	if err != nil {
		var none T
		return none, err
	}
	if err := t.track(t.registry, nil, own); err != nil {
		var none T
		return none, err
	}
	return t.decode(t.registry.CreateRecord(t.call(ctx, namespace), own, nil))
}

// Update replaces the object of the same name by obj, like a PUT. It returns a Conflict error if obj has another resourceVersion
// than the stored object. If the resourceVersion is "", obj overwrites the stored object.
func (t *Typed[T]) Update(ctx context.Context, namespace string, obj T) (T, error) {
	return t.replace(ctx, namespace, obj, t.registry, false)
}

// UpdateStatus replaces the status of the object of the same name. It changes nothing else.
func (t *Typed[T]) UpdateStatus(ctx context.Context, namespace string, obj T) (T, error) {
	view, err := t.registry.Status()
	if err != nil {
		var none T
		return none, err
	}
	return t.replace(ctx, namespace, obj, view, true)
}

// replace replaces the stored object by obj. If ownersStay is true, the managedFields of obj are ignored.
func (t *Typed[T]) replace(ctx context.Context, namespace string, obj T, to RecordUpdater, ownersStay bool) (T, error) {
	own, err := t.registry.copied(obj)
	if err != nil {
		var none T
		return none, err
	}
	m, err := t.registry.accept(own)
	if err != nil {
		var none T
		return none, err
	}
	put := func(_ *Call, current runtime.Object) (runtime.Object, error) {
		out := own.DeepCopyObject()
		if m, err := t.registry.accept(out); ownersStay && err == nil {
			m.SetManagedFields(nil)
		}
		return out, t.track(to, current, out)
	}
	rec, _, err := to.UpdateRecord(t.call(ctx, namespace), m.GetName(), put, nil)
	return t.decode(rec, err)
}

// Change applies change to the current state of an object and stores the result. If another write comes between, Change starts
// again, so change may be called several times. If change returns an error, Change returns that error and stores nothing. If the
// kind has a status, Change keeps the status as it is: see [Typed.ChangeStatus].
func (t *Typed[T]) Change(ctx context.Context, namespace, name string, change func(obj T) error) (T, error) {
	return t.change(ctx, namespace, name, change, t.registry)
}

// ChangeStatus is Change for the status of an object. It changes nothing else. It returns an error if the kind has no status.
func (t *Typed[T]) ChangeStatus(ctx context.Context, namespace, name string, change func(obj T) error) (T, error) {
	view, err := t.registry.Status()
	if err != nil {
		var none T
		return none, err
	}
	return t.change(ctx, namespace, name, change, view)
}

func (t *Typed[T]) change(ctx context.Context, namespace, name string, change func(obj T) error, to RecordUpdater) (T, error) {
	patch := func(_ *Call, current runtime.Object) (runtime.Object, error) {
		obj, ok := current.(T)
		if !ok { // the kind creates objects on update, and the object does not exist
			obj = t.registry.kind.New().(T)
		}
		live := current
		if t.owner != nil && live != nil {
			live = live.DeepCopyObject() // change works on current
		}
		if err := change(obj); err != nil {
			return obj, err
		}
		out, err := t.registry.settled(obj)
		if err != nil {
			return nil, err
		}
		return out, t.track(to, live, out)
	}
	rec, _, err := to.UpdateRecord(t.call(ctx, namespace), name, patch, nil)
	return t.decode(rec, err)
}

// Delete deletes an object, or marks it for deletion while finalizers or a grace period keep it. opts may be nil. Delete returns
// the last state of the object, and whether the object is gone. After a delete of an unreadable object, last is the zero value.
func (t *Typed[T]) Delete(ctx context.Context, namespace, name string, opts *metav1.DeleteOptions) (last T, gone bool, err error) {
	rec, gone, err := t.registry.DeleteRecord(t.call(ctx, namespace), name, opts)
	if err == nil && rec.Body.IsZero() {
		return last, gone, nil
	}
	last, err = t.decode(rec, err)
	return last, gone && err == nil, err
}

func (t *Typed[T]) decode(rec storage.Record, err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	obj, err := t.registry.Decode(rec)
	if err != nil {
		return none, err
	}
	return obj.(T), nil
}
