package crd

import (
	"maps"
	"reflect"

	"github.com/keelson-dev/keelson/server/registry"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// asSent returns what an object of the hub is in the version of a request that wants it stored: what the request sent, if the
// object is what was made of that, and otherwise what the conversion makes of it. A conversion adds what is required and drops
// what nobody knows, and so what it returns is no judge of what somebody sent. The status is that of the object, which the
// registry may have taken from old, or left out; was is old in the version, nil on create. The result is not to be changed.
func (r *rules) asSent(call *registry.Call, version string, obj, old, was *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	sent, hub := r.sent(call, version)
	if sent == nil || !sameContent(obj, hub) {
		return r.in(call, version, obj)
	}
	out := maps.Clone(sent.Object)
	switch {
	case sameStatus(obj, hub):
	case obj.Object["status"] == nil:
		delete(out, "status")
	case was != nil && sameStatus(obj, old):
		if delete(out, "status"); was.Object["status"] != nil {
			out["status"] = was.Object["status"]
		}
	default:
		return r.in(call, version, obj)
	}
	return withMetadata(out, obj, hub, sent), nil
}

// statusAsSent is asSent for a request that changes the status of old alone.
func (r *rules) statusAsSent(call *registry.Call, version string, obj, old, was *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	sent, hub := r.sent(call, version)
	if sent == nil || was == nil || !sameContent(obj, old) || !sameStatus(obj, hub) {
		return r.in(call, version, obj)
	}
	out := maps.Clone(was.Object)
	if delete(out, "status"); sent.Object["status"] != nil {
		out["status"] = sent.Object["status"]
	}
	return withMetadata(out, obj, hub, sent), nil
}

// sent returns what a request sent in a version, and what was made of it for the hub; nil: it sent nothing in that version.
func (r *rules) sent(call *registry.Call, version string) (sent, hub *unstructured.Unstructured) {
	if version == r.hub {
		return nil, nil
	}
	s, h := call.Sent()
	sent, _ = s.(*unstructured.Unstructured)
	hub, _ = h.(*unstructured.Unstructured)
	if sent == nil || hub == nil || sent.GetAPIVersion() != (schema.GroupVersion{Group: r.resource.Group, Version: version}).String() {
		return nil, nil
	}
	return sent, hub
}

// withMetadata is an object with the metadata of obj, of the hub, which the registry has filled, and of those that a conversion
// may change, labels and annotations, what the request sent if they are still what was made of that.
func withMetadata(object map[string]any, obj, hub, sent *unstructured.Unstructured) *unstructured.Unstructured {
	filled, made, asked := metadataOf(obj), metadataOf(hub), metadataOf(sent)
	metadata := maps.Clone(filled)
	if metadata == nil {
		metadata = map[string]any{}
	}
	for _, name := range []string{"labels", "annotations"} {
		if !reflect.DeepEqual(filled[name], made[name]) {
			continue
		}
		if delete(metadata, name); asked[name] != nil {
			metadata[name] = asked[name]
		}
	}
	object["metadata"] = metadata
	return &unstructured.Unstructured{Object: object}
}

func metadataOf(u *unstructured.Unstructured) map[string]any {
	metadata, _ := u.Object["metadata"].(map[string]any)
	return metadata
}

// sameContent reports whether two objects are the same but for their metadata and status.
func sameContent(a, b *unstructured.Unstructured) bool {
	count := func(object map[string]any) (n int) {
		for name, member := range object {
			if isContent(name) && member != nil {
				n++
			}
		}
		return n
	}
	if count(a.Object) != count(b.Object) {
		return false
	}
	for name, member := range a.Object {
		if isContent(name) && !reflect.DeepEqual(member, b.Object[name]) {
			return false
		}
	}
	return true
}

func isContent(name string) bool { return name != "metadata" && name != "status" }

func sameStatus(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(a.Object["status"], b.Object["status"])
}
