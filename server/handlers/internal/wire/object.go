package wire

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/runtime"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// whole is the view of an object itself.
type whole struct{}

func (whole) alone(w *Writer, dst []byte, it Item) ([]byte, error) {
	return w.appendWhole(w.ctx, dst, it)
}

func (whole) listed(w *Writer, dst []byte, it Item) ([]byte, error) {
	return w.appendListed(w.ctx, dst, it)
}

func (whole) listKind(w *Writer) schema.GroupVersionKind {
	if w.Known != nil {
		return w.Known.ListGVK
	}
	return w.Kind.GroupVersion().WithKind(w.Kind.Kind + "List")
}

func (whole) items() string { return "items" }

func (v whole) frame(w *Writer, lm metav1.ListMeta) Frame {
	if w.Untyped() { // its fields are in alphabetical order, like those of its items
		head := append(appendString([]byte(`{"apiVersion":`), w.Version), `,"items":[`...)
		tail := appendString([]byte(`],"kind":`), v.listKind(w).Kind)
		tail = append(appendUntypedListMeta(append(tail, `,"metadata":`...), lm), "}\n"...)
		return Frame{Head: head, Tail: tail, Empty: slices.Concat(head, tail)}
	}
	head := append(appendListMeta(appendHead(nil, v.listKind(w)), lm), `,"items":[`...)
	return Frame{Head: head, Tail: []byte("]}\n"), Empty: append(bytes.Clone(head), "]}\n"...)}
}

func (whole) frameCBOR(w *Writer, lm metav1.ListMeta) (metadata []byte, null bool) {
	if w.Untyped() {
		return appendUntypedListMeta(nil, lm), false
	}
	return appendListMeta(nil, lm), false
}

func (whole) message(w *Writer, it Item) (runtime.Object, schema.GroupVersionKind, error) {
	if it.isStatus() {
		return it.Object, metav1.Unversioned.WithKind("Status"), nil
	}
	obj, err := w.shown(w.ctx, it)
	if err != nil {
		return nil, w.Kind, err
	}
	if k := w.Scheme.KindOf(obj); k == nil || k.GVK != w.Kind { // a storage that is not a Registry returned it
		return nil, w.Kind, notAcceptable(fmt.Sprintf("the storage of %s returned a %T, which has no protobuf form of %s", w.Path, obj, w.Kind))
	}
	return obj, w.Kind, nil
}

func (whole) messageFields(*Writer) (metadata, items protowire.Number) { return 1, 2 }

func (whole) keeps() bool { return true }

func (whole) sure(_ *Writer, direct bool) bool { return direct }

func (whole) wrote() {}
