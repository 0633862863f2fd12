package wire

import (
	"bytes"

	"github.com/keelson-dev/keelson/runtime/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cbor writes one data item. A watch is a sequence of data items.
type cbor struct{}

func (cbor) mediaType() string  { return "application/cbor" }
func (cbor) streamType() string { return codec.CBORSequence }

func (cbor) alone(w *Writer, _ *[]byte, it Item) ([]byte, error) {
	return w.keep(it, func(it Item) ([]byte, error) { return w.translate(it, codec.CBOR(), false) })
}

func (cbor) listed(w *Writer, dst []byte, it Item) ([]byte, error) {
	if err := w.list(it); err != nil {
		return dst, err
	}
	return codec.AppendCBOR(dst, w.text)
}

func (cbor) between() string { return "" }

// event implements encoding: one data item after the other (https://www.rfc-editor.org/rfc/rfc8742).
func (c cbor) event(w *Writer, dst []byte, kind string, it Item) ([]byte, error) {
	dst = codec.AppendCBORMap(codec.AppendCBORTag(dst), 2)
	dst = codec.AppendCBORString(codec.AppendCBORString(dst, "type"), kind)
	object, err := c.alone(w, nil, it)
	return append(codec.AppendCBORString(dst, "object"), object...), err
}

func (cbor) socket(event []byte) (payload []byte, text bool) { return event, false }

// frame implements encoding. It writes a map with its keys ordered by length, as in all maps.
func (cbor) frame(w *Writer, lm metav1.ListMeta, count int, _ int64) (Frame, error) {
	gvk := w.view.listKind(w)
	metadata, null := w.view.frameCBOR(w, lm)
	head := codec.AppendCBORMap(codec.AppendCBORTag(nil), 4)
	head = codec.AppendCBORString(codec.AppendCBORString(head, "kind"), gvk.Kind)
	head = codec.AppendCBORString(head, "items")
	tail, err := codec.AppendCBOR(codec.AppendCBORString(nil, "metadata"), metadata)
	if err != nil {
		return Frame{}, err
	}
	tail = codec.AppendCBORString(codec.AppendCBORString(tail, "apiVersion"), gvk.GroupVersion().String())
	none := codec.AppendCBORArray(bytes.Clone(head), 0)
	if null {
		if none, err = codec.AppendCBOR(bytes.Clone(head), []byte("null")); err != nil {
			return Frame{}, err
		}
	}
	return Frame{Head: codec.AppendCBORArray(head, count), Tail: tail, Empty: append(none, tail...)}, nil
}

func (cbor) plain() bool { return false }

func (cbor) json(text []byte) ([]byte, error) {
	out, _, err := codec.CBOR().ToJSON(text, codec.Ignore)
	return out, err
}

func (cbor) keeps() bool   { return true }
func (cbor) objects() bool { return false }
