package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// decoder decodes objects that a server sends in the version sent, and converts them to the hub version.
type decoder struct {
	scheme *runtime.Scheme // nil: all objects are unstructured
	sent   schema.GroupVersionKind
	hub    schema.GroupVersionKind
}

// decode decodes the JSON text of an object. The result does not refer to text. The text may lack kind and apiVersion, as in the
// items of lists.
func (d decoder) decode(ctx context.Context, text json.RawMessage) (*item, error) {
	obj, err := d.object(text)
	if err != nil {
		return nil, fmt.Errorf("an object of %s cannot be decoded: %w", d.sent, err)
	}
	if d.hub != d.sent {
		if obj, err = d.scheme.ToVersionContext(ctx, obj, d.hub.GroupVersion()); err != nil {
			return nil, err
		}
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if m.GetName() == "" {
		return nil, fmt.Errorf("an object of %s has no name", d.sent)
	}
	revision, err := parseRevision(m.GetResourceVersion())
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", d.sent.Kind, m.GetNamespace(), m.GetName(), err)
	}
	return &item{obj: obj, meta: m, uid: m.GetUID(), revision: revision, size: len(text)}, nil
}

func (d decoder) object(text json.RawMessage) (runtime.Object, error) {
	var kind *runtime.Kind
	if d.scheme != nil {
		kind = d.scheme.Lookup(d.sent)
	}
	if kind != nil && !kind.Untyped() {
		decoded, err := codec.Decode(d.scheme, codec.JSON(), text, d.sent, codec.Ignore)
		if err == nil && decoded.GVK != d.sent {
			err = fmt.Errorf("it is of %s", decoded.GVK)
		}
		return decoded.Object, err
	}
	u := &unstructured.Unstructured{}
	if _, err := codec.Unmarshal(text, &u.Object, codec.Ignore); err != nil {
		return nil, err
	}
	if u.Object == nil {
		return nil, errors.New("it is no JSON object")
	}
	if gvk := u.GroupVersionKind(); gvk.Kind != "" && gvk != d.sent {
		return nil, fmt.Errorf("it is of %s", gvk)
	}
	u.SetGroupVersionKind(d.sent)
	if kind != nil {
		kind.SetDefaults(u)
		if err := codec.Settle(kind, u); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// parseRevision parses a resourceVersion.
func parseRevision(text string) (int64, error) {
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil || revision <= 0 {
		return 0, fmt.Errorf("the resourceVersion %q is no positive number, which remote readers need", text)
	}
	return revision, nil
}

// page is a list, or a page of one, as the server sends it.
type page struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}
