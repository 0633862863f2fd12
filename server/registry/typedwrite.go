package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"github.com/keelson-dev/keelson/runtime/patch"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// owner is a manager of fields.
type owner struct {
	manager      string
	main, status *patch.FieldManager // status is nil if the kind has no status
}

// As returns a Typed whose writes are those of a field manager: metadata.managedFields of the objects records the fields that
// each write changes, as for requests over HTTP. If another manager applies such a field with another value, that is a conflict.
// See https://kubernetes.io/docs/reference/using-api/server-side-apply/. If the fields of an object cannot be recorded, because
// the object is too large for that, its managedFields stay as they were. As in kube-apiserver, an object that has no managers,
// such as one that was created by a Typed without a manager, gets none before it is applied for the first time.
func (t *Typed[T]) As(manager string) (*Typed[T], error) {
	if manager == "" {
		return nil, errors.New("registry: As: the manager has no name; name it after the program or its controller")
	}
	own := &owner{manager: manager}
	var err error
	if own.main, err = t.registry.fieldManager("", t.registry.ResetFields); err != nil {
		return nil, err
	}
	if view, err := t.registry.Status(); err == nil {
		if own.status, err = view.FieldManager(); err != nil {
			return nil, err
		}
	}
	return &Typed[T]{registry: t.registry, user: t.user, owner: own}, nil
}

// FieldManager returns a new field manager of the status, for a writer that records its fields by itself.
func (v *StatusView) FieldManager() (*patch.FieldManager, error) {
	return v.registry.fieldManager("status", v.ResetFields)
}

func (r *Registry) fieldManager(subresource string, reset func(*runtime.Kind) [][]string) (*patch.FieldManager, error) {
	m, err := patch.NewFieldManager(patch.FieldManagerOptions{Scheme: r.scheme, Models: r.models, Kind: r.kind.GVK, Subresource: subresource, Reset: reset})
	if err != nil {
		return nil, fmt.Errorf("registry of %s: %w", r.kind.GVK, err)
	}
	return m, nil
}

// track records the change from live, which may be nil, to obj. to is what is written.
func (t *Typed[T]) track(to RecordUpdater, live, obj runtime.Object) error {
	if t.owner == nil {
		return nil
	}
	fields := t.owner.main
	if _, ok := to.(*StatusView); ok {
		fields = t.owner.status
	}
	err := fields.Update(live, obj, t.owner.manager)
	return EntriesStatus(err, t.registry.kind.GVK.GroupKind(), obj) // after any other error the entries are as they were
}

// Apply is a server-side apply: it makes the fields of config, an object in JSON or YAML with apiVersion, kind and metadata.name,
// those of the manager of [Typed.As], and removes the fields that the manager applied before and that config no longer has. Apply
// creates the object if there is none. If another manager has a field of config with another value, Apply returns a Conflict
// error. With force, the manager of the Typed becomes the manager of that field instead. Apply returns an error for a Typed
// without a manager.
func (t *Typed[T]) Apply(ctx context.Context, namespace string, config []byte, force bool) (T, error) {
	var none T
	if t.owner == nil {
		return none, errors.New("registry: Apply: the Typed has no field manager; make one with As")
	}
	text, problems, err := codec.ToJSONWithin(codec.YAML(), config, codec.Strict, codec.BodyLimits{})
	if err == nil && len(problems) > 0 {
		err = codec.StrictError(problems)
	}
	if err != nil {
		return none, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	fields, err := patch.Configuration(text)
	if err != nil {
		return none, PatchStatus(err)
	}
	name := (&unstructured.Unstructured{Object: fields}).GetName()
	if name == "" {
		return none, apierrors.NewBadRequest("a configuration needs metadata.name")
	}
	call := t.call(ctx, namespace)
	call.CreateOnUpdate = true
	apply := func(_ *Call, current runtime.Object) (runtime.Object, error) {
		obj, err := t.owner.main.Apply(current, apiruntime.DeepCopyJSON(fields), t.owner.manager, force)
		return obj, PatchStatus(err)
	}
	rec, _, err := t.registry.UpdateRecord(call, name, apply, nil)
	return t.decode(rec, err)
}

// Patch applies a JSON patch, a JSON merge patch or, to a kind with a Go type, a strategic merge patch to the current state of an
// object, and stores the result. If another write comes between, Patch starts again. If the kind has a status, Patch keeps the
// status as it is. A field that the kind does not have is an error. For types.ApplyYAMLPatchType use [Typed.Apply].
func (t *Typed[T]) Patch(ctx context.Context, namespace, name string, kind types.PatchType, data []byte) (T, error) {
	of := t.registry.kind
	patched := func(_ *Call, current runtime.Object) (runtime.Object, error) {
		if current == nil {
			return nil, apierrors.NewNotFound(t.registry.resource, name)
		}
		named := ofKind(current, of.GVK)
		was, err := codec.Encode(named)
		if err != nil {
			return nil, err
		}
		goType := of.Type
		if of.Untyped() {
			goType = nil
		}
		text, err := patch.Bounds{}.Patch(ctx, kind, was, data, goType)
		if err != nil {
			return nil, PatchStatus(err)
		}
		d, err := codec.Decode(t.registry.scheme, codec.JSON(), text, of.GVK, codec.Strict)
		if err == nil && len(d.Problems) > 0 {
			err = codec.StrictError(d.Problems)
		}
		if err != nil || reflect.TypeOf(d.Object) != reflect.TypeFor[T]() {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the patched object is no %s: %v", of.GVK.Kind, err))
		}
		return d.Object, t.track(t.registry, current, d.Object)
	}
	rec, _, err := t.registry.UpdateRecord(t.call(ctx, namespace), name, patched, nil)
	return t.decode(rec, err)
}

// EntriesStatus returns the Status error for an object that was refused by its field manager, with an [*patch.EntriesError] as the
// error err. For any other err, and for none, it returns nil.
func EntriesStatus(err error, kind schema.GroupKind, obj runtime.Object) error {
	var tooMany *patch.EntriesError
	if !errors.As(err, &tooMany) {
		return nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	return excerpt.Invalid(kind, m.GetName(), field.ErrorList{tooMany.Err})
}

// PatchStatus returns the StatusError for a patch or a configuration that cannot be applied, which is a *patch.Error. It returns
// other errors unchanged.
func PatchStatus(err error) error {
	var bad *patch.Error
	if !errors.As(err, &bad) {
		return err
	}
	switch bad.Code {
	case http.StatusRequestEntityTooLarge:
		return apierrors.NewRequestEntityTooLargeError(bad.Message)
	case http.StatusUnprocessableEntity:
		return apierrors.NewGenericServerResponse(bad.Code, "", schema.GroupResource{}, "", bad.Message, 0, false)
	}
	return apierrors.NewBadRequest(bad.Message)
}
