package roundtrip

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
)

// partial converts obj of the kind k to another version with missing fields: without each field beside metadata, such as spec,
// without each field directly inside these, and with metadata alone. A server-side apply converts objects that have only the
// fields of their owners.
func (c *checker) partial(k, to *runtime.Kind, obj runtime.Object) *problem {
	text, err := codec.Encode(obj)
	if err != nil {
		return &problem{k.GVK, "it cannot be encoded as JSON", err.Error()}
	}
	var whole map[string]any
	if _, err := codec.Unmarshal(text, &whole, codec.Ignore); err != nil {
		return &problem{k.GVK, "its JSON is no object", err.Error()}
	}
	bare := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(whole)) {
		switch name {
		case "kind", "apiVersion", "metadata":
			bare[name] = whole[name]
			continue
		}
		if p := c.converts(k, to, leftOut(whole, name, nil), name); p != nil {
			return p
		}
		members, _ := whole[name].(map[string]any)
		for _, member := range slices.Sorted(maps.Keys(members)) {
			if p := c.converts(k, to, leftOut(whole, name, leftOut(members, member, nil)), name+"."+member); p != nil {
				return p
			}
		}
	}
	return c.converts(k, to, bare, "anything but metadata")
}

// leftOut returns a copy of object in which the member name is replaced by other, or removed if other is nil.
func leftOut(object map[string]any, name string, other map[string]any) map[string]any {
	out := maps.Clone(object)
	delete(out, name)
	if other != nil {
		out[name] = other
	}
	return out
}

// converts returns a problem if a conversion fails for an object without some fields.
func (c *checker) converts(k, to *runtime.Kind, fields map[string]any, without string) *problem {
	text, err := json.Marshal(fields)
	if err != nil {
		return &problem{k.GVK, "it cannot be encoded as JSON", err.Error()}
	}
	obj := k.New()
	if _, err := codec.Unmarshal(text, obj, codec.Ignore); err != nil {
		return nil // the type may require a field that has no meaning without another
	}
	obj.GetObjectKind().SetGroupVersionKind(k.GVK)
	if _, err := c.scheme.ToVersion(obj, to.GVK.GroupVersion()); err != nil {
		return &problem{k.GVK, fmt.Sprintf("%s -> %s fails without %s; a server-side apply converts objects that have only what their owners gave them, so what is absent must be no error",
			version(k.GVK, to.GVK), version(to.GVK, k.GVK), without), err.Error()}
	}
	return nil
}
