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

// ObjectSchema says what the objects of a kind without a Go type are like: see [KindOptions].Schema. Its methods are called
// concurrently, with objects that belong to the call and have the values of decoded JSON: map[string]any, []any, string,
// bool, int64, float64 or nil. Nobody changes a schema; a kind whose objects become others is registered anew.
//
// A schema that also says how OpenAPI describes the objects and how they are merged implements the Describer of package
// schema.
type ObjectSchema interface {
	// Conform brings an object into shape, in place: what a Go type does when JSON is decoded into it. Fields that are not
	// specified go, and the paths of at most report of them come back ("spec.sise"); metadata becomes what a
	// metav1.ObjectMeta holds. Metadata of a wrong type is an error, or when the object is one that was stored, dropped.
	Conform(object map[string]any, stored bool, report int) (unknown []string, err error)
	// SetDefaults sets defaults in place. It is idempotent. One by which a small object may get large has to tell grows, which may
	// be nil, about how many bytes of defaults it has set, before it sets them and each time that they have doubled. An error of
	// grows ends it, and is returned; there are no others.
	SetDefaults(object map[string]any, grows func(bytes int) error) error
}

// ConvertUntyped makes of an object of a kind without a Go type one of the version to: see [KindOptions].Convert. in belongs
// to the call, and may be what is returned.
type ConvertUntyped func(in *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error)

// ConvertAllUntyped is ConvertUntyped for many objects of one kind at once, of any versions but to: for a conversion of which
// each call costs more than each object, such as one that somebody else makes. It returns as many objects, in their order, or an
// error for all of them. ctx ends when nobody waits for the objects any more; it has no deadline of its own where objects are
// read or written one by one.
type ConvertAllUntyped func(ctx context.Context, in []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error)

// Untyped reports whether the kind has no Go type: its objects are *unstructured.Unstructured, and its lists
// *unstructured.UnstructuredList. An object or a list of it is recognised by its kind and apiVersion.
func (k *Kind) Untyped() bool { return k.untyped }

// HasConvert reports whether the kind has a function that makes objects of one version those of another: see
// [KindOptions].Convert and ConvertAll.
func (k *Kind) HasConvert() bool { return k.convert != nil || k.convertAll != nil }

// VersionsDiffer reports whether the kind has no Go type, and the objects of its versions may have different fields: it has a Schema
// or a function that converts.
func (k *Kind) VersionsDiffer() bool { return k.untyped && (k.Schema != nil || k.HasConvert()) }

// ConvertsAll reports whether the kind is one of which many objects are best converted at once, by [Scheme.ToVersions]: see
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

// untypedToVersion returns a copy of an untyped object or list that is of the kind to. Items keep their kind, as they do
// in the lists of a server. What the objects of a version other than the hub's do not have is dropped there; the hub takes
// everything, so that who judges a request there sees it whole.
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

// untypedObjects converts objects, which belong to it. Errors are ConversionErrors.
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

// convertObjects calls the program's conversion, if there is one, and sees to what it may not change.
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

// callConvert calls the function that the kind has.
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

// keepMetadata makes a converted object's metadata that from before, but for labels and annotations.
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

// Normalize gives an untyped object the values that decoded JSON has (string, bool, int64, float64, nil, []any and
// map[string]any) where a program has put others, such as an int or a struct: apimachinery's deep copy panics at those.
// Values that have no JSON are an error. What the object has shared with others is replaced, not changed; one that needs
// nothing, or has a Go type, is left as it is.
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

// isDecoded reports whether a value is one that decoding JSON makes.
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
