package wire

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/keelson-dev/keelson/runtime"
	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	partialKind     = "PartialObjectMetadata"
	partialListKind = "PartialObjectMetadataList"
)

// partial is the view of an object's metadata alone, as a PartialObjectMetadata.
type partial struct{}

func (partial) alone(w *Writer, dst []byte, it Item) ([]byte, error) {
	return w.appendPartial(w.ctx, dst, it, w.form.as.GroupVersion())
}

func (v partial) listed(w *Writer, dst []byte, it Item) ([]byte, error) { return v.alone(w, dst, it) }

// appendPartial appends an item as a PartialObjectMetadata of version gv.
func (o *Objects) appendPartial(ctx context.Context, dst []byte, it Item, gv schema.GroupVersion) ([]byte, error) {
	it, err := o.withMetadata(ctx, it)
	if err != nil {
		return dst, err
	}
	dst = appendHead(dst, gv.WithKind(partialKind))
	if it.Object == nil {
		return append(it.Record.Body.AppendMetadata(dst, it.Record.Revision), '}'), nil
	}
	m, err := meta.Accessor(it.Object)
	if err != nil {
		return dst, err
	}
	text, err := json.Marshal(&meta.AsPartialObjectMetadata(m).ObjectMeta)
	return append(append(dst, text...), '}'), err
}

func (partial) listKind(w *Writer) schema.GroupVersionKind {
	return w.form.as.GroupVersion().WithKind(partialListKind)
}

func (partial) items() string { return "items" }

// frame implements view. An empty list has null in this form only, as in kube-apiserver.
func (v partial) frame(w *Writer, lm metav1.ListMeta) Frame {
	head := append(appendListMeta(appendHead(nil, v.listKind(w)), lm), `,"items":`...)
	return Frame{Head: append(bytes.Clone(head), '['), Tail: []byte("]}\n"), Empty: append(head, "null}\n"...)}
}

func (partial) frameCBOR(_ *Writer, lm metav1.ListMeta) (metadata []byte, null bool) {
	return appendListMeta(nil, lm), true
}

// message implements view. Only the metadata of a record is decoded.
func (partial) message(w *Writer, it Item) (runtime.Object, schema.GroupVersionKind, error) {
	gvk := w.form.as.GroupVersion().WithKind(partialKind)
	it, err := w.withMetadata(w.ctx, it)
	if err != nil {
		return nil, gvk, err
	}
	if it.Object != nil {
		m, err := meta.Accessor(it.Object)
		if err != nil {
			return nil, gvk, err
		}
		return meta.AsPartialObjectMetadata(m), gvk, nil
	}
	out := &metav1.PartialObjectMetadata{}
	return out, gvk, json.Unmarshal(it.Record.Body.AppendMetadata(nil, it.Record.Revision), &out.ObjectMeta)
}

func (partial) messageFields(w *Writer) (metadata, items protowire.Number) {
	if w.form.as.Version == metav1beta1.SchemeGroupVersion.Version {
		return 2, 1
	}
	return 1, 2
}

func (partial) keeps() bool { return true }

func (partial) sure(w *Writer, direct bool) bool { return w.Records != nil && !w.IsConverted() }

func (partial) wrote() {}
