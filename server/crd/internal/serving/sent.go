package serving

import (
	"maps"
	"reflect"

	"github.com/keelson-dev/keelson/server/registry"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// sent returns the object that a request sent in a version, and the hub object made from it. It returns nil if there is none in
// that version.
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

// withMetadata returns object with the metadata of obj, a hub object that the registry has completed. Labels and annotations,
// which a conversion may change, are those that the request sent, unless they were changed after the conversion (hub).
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

// sameContent reports whether two objects are equal except for their metadata and status.
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
