package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ObjectSchema describes the objects of one version of a kind without a Go type: see [KindOptions].Schema. It names the fields
// that are unknown and dropped, and sets defaults. With a schema, versions may have different fields. A conversion to the hub
// drops nothing, so that the program can examine the whole object there. The fields that a version does not have are dropped when
// an object is converted to that version for a client or for the store.
//
// The methods are called concurrently. The objects belong to the call and have the values of decoded JSON: map[string]any, []any,
// string, bool, int64, float64 or nil. A schema must not be changed; if the objects of a kind change, the kind is registered
// again.
//
// A schema may also implement the Describer of package schema, which describes the objects for OpenAPI and how they are merged.
type ObjectSchema interface {
	// Conform adapts an object to the schema in place, as a Go type does when JSON is decoded into it. Fields that are not
	// specified are removed, and the paths of at most report of them are returned ("spec.sise"). metadata is reduced to the
	// fields of a metav1.ObjectMeta. A field of metadata that has a wrong type is an error; if stored is set, it is removed
	// instead.
	Conform(object map[string]any, stored bool, report int) (unknown []string, err error)
	// SetDefaults sets defaults in place. It must be idempotent. A method that may make a small object large must call grows with
	// the number of bytes of defaults set so far, before it sets them and each time that this number has doubled. grows may be
	// nil. If grows returns an error, SetDefaults stops and returns it; it returns no other errors.
	SetDefaults(object map[string]any, grows func(bytes int) error) error
}

// ConvertUntyped converts an object of a kind without a Go type to the version to: see [KindOptions].Convert. in belongs to the
// call, and may be returned.
type ConvertUntyped func(in *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error)

// ConvertAllUntyped is like ConvertUntyped, for many objects of one kind at once. None of the objects is of the version to. It is
// for conversions where each call costs more than each object, such as the call of a webhook. It returns as many objects, in the
// same order, or an error for all of them. ctx is cancelled when nobody waits for the objects any more; it has no deadline of its
// own if objects are read or written one at a time.
type ConvertAllUntyped func(ctx context.Context, in []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error)

// Untyped reports whether the kind has no Go type. Its objects are then *unstructured.Unstructured, its lists
// *unstructured.UnstructuredList, and both are identified by their kind and apiVersion.
func (k *Kind) Untyped() bool { return k.untyped }

// HasConvert reports whether the kind has a conversion function: see [KindOptions].Convert and ConvertAll.
func (k *Kind) HasConvert() bool { return k.convert != nil || k.convertAll != nil }

// VersionsDiffer reports whether the kind has no Go type and the objects of its versions may have different fields, because the
// kind has a Schema or a conversion function.
func (k *Kind) VersionsDiffer() bool { return k.untyped && (k.Schema != nil || k.HasConvert()) }

// ConvertsAll reports whether many objects of the kind are best converted by one call of [Scheme.ToVersions]: see
// [KindOptions].ConvertAll.
func (k *Kind) ConvertsAll() bool { return k.convertAll != nil }

func newUntyped(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind}}
}

func newUntypedList(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind},
		Items:  []unstructured.Unstructured{},
	}
}

func isUntyped(obj Object) bool {
	switch obj.(type) {
	case *unstructured.Unstructured, *unstructured.UnstructuredList:
		return true
	}
	return false
}

// untypedKind returns the kind gvk if it is registered without a Go type, or nil.
func (s *Scheme) untypedKind(gvk schema.GroupVersionKind) *Kind {
	if k := s.Lookup(gvk); k != nil && k.untyped {
		return k
	}
	return nil
}

// untypedToVersion returns a copy of an untyped object or list, converted to the kind to. The items of a list keep their kind, as
// in the lists of a server. Fields that the schema of a version does not have are dropped, unless the version is the hub: a
// program that examines a request in the hub version must see the whole object.
func (s *Scheme) untypedToVersion(ctx context.Context, obj Object, from, to *Kind) (Object, error) {
	switch out := obj.DeepCopyObject().(type) {
	case *unstructured.Unstructured:
		all, err := s.untypedObjects(ctx, []*unstructured.Unstructured{out}, from, to)
		if err != nil {
			return nil, err
		}
		return all[0], nil
	case *unstructured.UnstructuredList:
		out.SetAPIVersion(to.GVK.GroupVersion().String())
		items := make([]*unstructured.Unstructured, len(out.Items))
		for i := range out.Items {
			items[i] = &out.Items[i]
		}
		items, err := s.untypedObjects(ctx, items, from, to)
		if err != nil {
			return nil, err
		}
		for i := range items {
			out.Items[i] = *items[i]
		}
		return out, nil
	}
	return nil, fmt.Errorf("%T is not what objects of %s are", obj, from.GVK)
}

// untypedObjects converts objects, and may change in. Its errors are ConversionErrors.
func (s *Scheme) untypedObjects(ctx context.Context, in []*unstructured.Unstructured, from, to *Kind) ([]*unstructured.Unstructured, error) {
	fail := func(cause error) error {
		return &ConversionError{Kind: to.GVK.GroupKind(), From: from.GVK.GroupVersion(), To: to.GVK.GroupVersion(), Err: cause}
	}
	out, err := from.convertObjects(ctx, in, to)
	if err != nil {
		return nil, fail(err)
	}
	hub, _ := s.Hub(to.GVK.GroupKind())
	for _, u := range out {
		u.SetAPIVersion(to.GVK.GroupVersion().String())
		if to.Schema == nil || hub == to.GVK {
			continue
		}
		if _, err := to.Schema.Conform(u.Object, false, 0); err != nil {
			return nil, fail(err)
		}
	}
	return out, nil
}

// convertObjects calls the program's conversion, if there is one, and restores or checks what the conversion may not change.
func (k *Kind) convertObjects(ctx context.Context, in []*unstructured.Unstructured, to *Kind) (out []*unstructured.Unstructured, err error) {
	if !k.HasConvert() {
		return in, nil
	}
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("the conversion panicked: %v", p)
		}
	}()
	before := make([]map[string]any, len(in))
	for i, u := range in {
		metadata, _ := u.Object["metadata"].(map[string]any)
		before[i] = apiruntime.DeepCopyJSON(metadata)
	}
	if out, err = k.callConvert(ctx, in, to.GVK.GroupVersion()); err != nil {
		return nil, err
	}
	for i, u := range out {
		if err := keepMetadata(u, before[i], to); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// callConvert calls the conversion function of the kind.
func (k *Kind) callConvert(ctx context.Context, in []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
	if k.convertAll != nil {
		out, err := k.convertAll(ctx, in, to)
		if err == nil && len(out) != len(in) {
			return nil, fmt.Errorf("the conversion returned %d objects for %d", len(out), len(in))
		}
		return out, err
	}
	out := make([]*unstructured.Unstructured, len(in))
	for i, u := range in {
		var err error
		if out[i], err = k.convert(u, to); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keepMetadata replaces the metadata of a converted object with before, except labels and annotations. It returns an error if the
// conversion changed the kind, name, namespace or uid.
func keepMetadata(out *unstructured.Unstructured, before map[string]any, to *Kind) error {
	if out == nil {
		return errors.New("the conversion returned neither an object nor an error")
	}
	if err := Normalize(out); err != nil {
		return err
	}
	if got := out.GetKind(); got != to.GVK.Kind {
		return fmt.Errorf("the conversion returned the kind %q, not %q", got, to.GVK.Kind)
	}
	after, ok := out.Object["metadata"].(map[string]any)
	if !ok && before != nil {
		return errors.New("the conversion returned an object without metadata")
	}
	for _, name := range []string{"name", "namespace", "uid"} {
		if before[name] != after[name] {
			return fmt.Errorf("the conversion changed metadata.%s from %v to %v", name, before[name], after[name])
		}
	}
	for _, name := range []string{"labels", "annotations"} {
		delete(before, name)
		if v, ok := after[name]; ok {
			before[name] = v
		}
	}
	if before != nil {
		out.Object["metadata"] = before
	}
	return nil
}

// Normalize gives an untyped object the values that decoded JSON has: string, bool, int64, float64, nil, []any and
// map[string]any. It converts other values that a program has put there, such as an int or a struct, because apimachinery's deep
// copy panics for them. Normalize returns an error for a value that cannot be encoded as JSON. It replaces u.Object and does not
// change parts that the object shares with others. An object that needs no change, or has a Go type, is left as it is.
func Normalize(obj Object) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u == nil || isDecoded(u.Object) {
		return nil
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("a value of the untyped object has no JSON: %w", err)
	}
	var members map[string]any
	if err := utiljson.Unmarshal(text, &members); err != nil {
		return fmt.Errorf("the untyped object: %w", err)
	}
	u.Object = members
	return nil
}

// isDecoded reports whether v consists of values that the JSON decoder makes.
func isDecoded(v any) bool {
	switch v := v.(type) {
	case nil, string, bool, int64, float64:
		return true
	case []any:
		for _, item := range v {
			if !isDecoded(item) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, member := range v {
			if !isDecoded(member) {
				return false
			}
		}
		return true
	}
	return false
}
