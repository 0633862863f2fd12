package registry

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// untypedShape is the shape of kinds without a Go type. The field named status is the status.
type untypedShape struct{ withStatus bool }

func membersOf(obj runtime.Object) map[string]any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object
	}
	return nil
}

func (s untypedShape) hasStatus() bool { return s.withStatus }

func (s untypedShape) contentNames() []string { return []string{"spec"} }

func (s untypedShape) dropStatus(obj runtime.Object) {
	if s.withStatus {
		delete(membersOf(obj), "status")
	}
}

func (s untypedShape) takeStatus(obj, from runtime.Object) {
	if !s.withStatus {
		return
	}
	if status, ok := membersOf(from)["status"]; ok {
		membersOf(obj)["status"] = apiruntime.DeepCopyJSONValue(status)
	} else {
		delete(membersOf(obj), "status")
	}
}

func (s untypedShape) sameContent(a, b runtime.Object) bool {
	return sameText(s.content(a), s.content(b))
}

// content returns what sameContent compares.
func (s untypedShape) content(obj runtime.Object) map[string]any {
	out := make(map[string]any, len(membersOf(obj)))
	for name, member := range membersOf(obj) {
		switch {
		case name == "apiVersion" || name == "kind" || name == "metadata" || name == "status" && s.withStatus:
		default:
			out[name] = member
		}
	}
	return out
}

// acceptKind sets the registry's kind in an untyped object without kind and apiVersion. It returns an error for an object of
// another kind: the Go type is the same for all kinds.
func (r *Registry) acceptKind(obj runtime.Object) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	switch gvk := u.GroupVersionKind(); {
	case gvk == r.kind.GVK:
		return nil
	case gvk.Empty():
		u.SetGroupVersionKind(r.kind.GVK)
		return nil
	default:
		return apierrors.NewInternalError(fmt.Errorf("got a %s for %s", gvk, r.kind.GVK))
	}
}

// copied returns a copy of an object from a caller in process. An untyped object may contain values that decoded JSON does not
// have, so it is copied through JSON.
func (r *Registry) copied(obj runtime.Object) (runtime.Object, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u == nil {
		return obj.DeepCopyObject(), nil
	}
	text, err := json.Marshal(u.Object)
	out := &unstructured.Unstructured{}
	if err == nil {
		_, err = codec.Unmarshal(text, &out.Object, codec.Ignore)
	}
	if err == nil {
		err = codec.Settle(r.kind, out)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object cannot be written as JSON of an object: %v", err))
	}
	return out, nil
}

// settled is copied for an object that nothing else refers to. A typed object is returned without a copy.
func (r *Registry) settled(obj runtime.Object) (runtime.Object, error) {
	if u, ok := obj.(*unstructured.Unstructured); !ok || u == nil {
		return obj, nil
	}
	return r.copied(obj)
}

// normalize is runtime.Normalize for an object that plug-ins and the strategy have changed.
func normalize(obj runtime.Object) error {
	if err := runtime.Normalize(obj); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("after defaults, admission or a strategy: %w", err))
	}
	return nil
}

// setDefaults sets defaults. If the kind has schemas with defaults, it sets those of the request's version, whose fields the
// object still has. Those of the stored version are set when the object is stored.
func (r *Registry) setDefaults(call *Call, obj runtime.Object) {
	k := r.requestKind(call)
	switch {
	case k == nil || r.kind.Schema == nil:
		r.kind.SetDefaults(obj)
	case r.kind.HasConvert():
		r.setDefaultsIn(call, k, obj)
	default:
		k.SetDefaults(obj)
	}
}

// setDefaultsIn sets the defaults of a version whose fields are different from the hub's. It does nothing if that version has no
// defaults to set, or if the object cannot be converted to it.
func (r *Registry) setDefaultsIn(call *Call, k *runtime.Kind, obj runtime.Object) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || runtime.Normalize(u) != nil { // the caller reports the error
		return
	}
	before, err := call.InVersion(r.scheme, u, k.GVK.GroupVersion())
	if err != nil {
		return
	}
	there := before.DeepCopyObject()
	if k.SetDefaults(there); reflect.DeepEqual(before, there) {
		return
	}
	if back, err := r.scheme.ToVersionContext(call.Context, there, r.kind.GVK.GroupVersion()); err == nil {
		u.Object = back.(*unstructured.Unstructured).Object
	}
}

// sameContent is sameContent of the shape. If the kind has schemas, fields that the request's version does not have are not
// compared: the request loses them, without meaning to change them.
func (r *Registry) sameContent(call *Call, obj, old runtime.Object) bool {
	if r.shape.sameContent(obj, old) {
		return true
	}
	k := r.requestKind(call)
	if k == nil || r.kind.Schema == nil {
		return false
	}
	now, err := call.InVersion(r.scheme, obj, k.GVK.GroupVersion())
	if err != nil {
		return false
	}
	was, err := call.InVersion(r.scheme, old, k.GVK.GroupVersion())
	return err == nil && r.shape.sameContent(now, was)
}
