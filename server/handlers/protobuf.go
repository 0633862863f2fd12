package handlers

import (
	"encoding/json"

	"github.com/keelson-dev/keelson/runtime"
	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// envelope makes the body of an item in protobuf.
func (a *encoding) envelope(it item) ([]byte, error) {
	if status, ok := it.obj.(*metav1.Status); ok {
		return a.proto.Encode(status, metav1.Unversioned.WithKind("Status"))
	}
	obj, gvk, err := a.message(it)
	if err != nil {
		return nil, err
	}
	body, err := a.proto.Encode(obj, gvk)
	if err != nil {
		return nil, notAcceptable("%v", err)
	}
	return body, nil
}

// message makes the object that an item is in protobuf, and says of which kind it is.
func (a *encoding) message(it item) (runtime.Object, schema.GroupVersionKind, error) {
	if a.isPartial() {
		it, err := a.withMetadata(it)
		if err != nil {
			return nil, a.kind, err
		}
		obj, err := partialObject(it)
		return obj, a.As.GroupVersion().WithKind("PartialObjectMetadata"), err
	}
	obj, err := a.object(it)
	if err == nil {
		obj, err = a.inVersion(a.ctx, obj)
	}
	if err != nil {
		return nil, a.kind, err
	}
	if k := a.scheme.KindOf(obj); k == nil || k.GVK != a.kind { // what a storage of the program's own returned
		return nil, a.kind, notAcceptable("the storage of %s returned a %T, which has no protobuf form of %s", a.path(), obj, a.kind)
	}
	return obj, a.kind, nil
}

// partialObject is the metadata of an item, of which nothing else is decoded.
func partialObject(it item) (*metav1.PartialObjectMetadata, error) {
	if it.obj != nil {
		m, err := meta.Accessor(it.obj)
		if err != nil {
			return nil, err
		}
		return meta.AsPartialObjectMetadata(m), nil
	}
	out := &metav1.PartialObjectMetadata{}
	return out, json.Unmarshal(it.rec.Body.AppendMetadata(nil, it.rec.Revision), &out.ObjectMeta)
}

// listFields are the numbers of the fields of a list: of its metadata, and of its items.
func (a *encoding) listFields() (metadata, items protowire.Number) {
	if a.isPartial() && a.As.Version == metav1beta1.SchemeGroupVersion.Version {
		return 2, 1
	}
	return 1, 2
}

// appendMessageItem appends an item as a field of its list.
func (a *encoding) appendMessageItem(dst []byte, it item) ([]byte, error) {
	obj, _, err := a.message(it)
	if err != nil {
		return dst, err
	}
	if a.text, err = a.proto.Append(a.text[:0], obj); err != nil {
		return dst, notAcceptable("%v", err)
	}
	_, number := a.listFields()
	return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), a.text), nil
}
