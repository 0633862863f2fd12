package handlers

import (
	"iter"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// respondMessage is respondOne in protobuf.
func (c *call) respondMessage(code int, it item, f form) error {
	obj, gvk, err := c.message(it)
	if err != nil {
		return err
	}
	body, err := codec.EncodeProtobuf(obj, gvk)
	if err != nil {
		return notAcceptable("%v", err)
	}
	c.respondBytes(code, body, f)
	return nil
}

// respondMessages is respondList in protobuf. The envelope says how long the list is before it begins, so all of it is
// made before the first byte.
func (c *call) respondMessages(code int, lm metav1.ListMeta, items iter.Seq[item], f form) error {
	list, err := codec.NewProtobufList(lm)
	if err != nil {
		return err
	}
	for it := range items {
		obj, _, err := c.message(it)
		if err != nil {
			return err
		}
		if err := list.Add(obj); err != nil {
			return notAcceptable("%v", err)
		}
	}
	body, err := list.Encode(c.kind.GroupVersion().WithKind(c.kind.Kind + "List"))
	if err != nil {
		return err
	}
	c.respondBytes(code, body, f)
	return nil
}

// message makes the item's object in the version of the URL, and says of which kind it is.
func (c *call) message(it item) (runtime.Object, schema.GroupVersionKind, error) {
	if status, ok := it.obj.(*metav1.Status); ok {
		return status, metav1.Unversioned.WithKind("Status"), nil
	}
	obj, err := c.object(it)
	if err == nil {
		obj, err = c.inVersion(obj)
	}
	if err != nil {
		return nil, c.kind, err
	}
	if k := c.scheme.KindOf(obj); k == nil || k.GVK != c.kind { // what a storage of the program's own returned
		return nil, c.kind, notAcceptable("the storage of %s returned a %T, which has no protobuf form of %s", c.path(), obj, c.kind)
	}
	return obj, c.kind, nil
}

func (c *call) respondBytes(code int, body []byte, f form) {
	out := c.newBody(code, f.Format.MediaType())
	defer out.close()
	out.end(body)
}
