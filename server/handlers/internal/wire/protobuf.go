package wire

import (
	"bytes"

	"github.com/keelson-dev/keelson/runtime/codec"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// protobuf writes an envelope that contains a message. The message is made from a Go object.
type protobuf struct{ format *codec.ProtobufFormat }

func (p protobuf) mediaType() string  { return p.format.MediaType() }
func (p protobuf) streamType() string { return p.format.MediaType() + ";stream=watch" }

func (p protobuf) alone(w *Writer, _ *[]byte, it Item) ([]byte, error) {
	return w.keep(it, func(it Item) ([]byte, error) { return p.envelope(w, it) })
}

// envelope returns an item as the body of an answer.
func (p protobuf) envelope(w *Writer, it Item) ([]byte, error) {
	obj, gvk, err := w.viewOf(&it).message(w, it)
	if err != nil {
		return nil, err
	}
	body, err := p.format.Encode(obj, gvk)
	if err != nil {
		return nil, notAcceptable(err.Error())
	}
	return body, nil
}

// listed implements encoding. An item is a field of the list.
func (p protobuf) listed(w *Writer, dst []byte, it Item) ([]byte, error) {
	obj, _, err := w.view.message(w, it)
	if err != nil {
		return dst, err
	}
	if w.text, err = p.format.Append(w.text[:0], obj); err != nil {
		return dst, notAcceptable(err.Error())
	}
	_, number := w.view.messageFields(w)
	return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), w.text), nil
}

func (protobuf) between() string { return "" }

func (p protobuf) event(w *Writer, dst []byte, kind string, it Item) ([]byte, error) {
	object, err := p.alone(w, nil, it)
	if err != nil {
		return dst, err
	}
	return codec.AppendWatchFrame(dst, kind, object), nil
}

// lengthBefore is the number of bytes before an event in a stream. They contain the length of the event, which a WebSocket
// message does not need.
const lengthBefore = 4

func (protobuf) socket(event []byte) (payload []byte, text bool) { return event[lengthBefore:], false }

// frame implements encoding. The envelope contains the length of the list.
func (protobuf) frame(w *Writer, lm metav1.ListMeta, _ int, size int64) (Frame, error) {
	metadata, items := w.view.messageFields(w)
	message, err := lm.Marshal()
	if err != nil {
		return Frame{}, err
	}
	first := protowire.AppendBytes(protowire.AppendTag(nil, metadata, protowire.BytesType), message)
	var last []byte
	if metadata > items {
		first, last = nil, first
	}
	around := func(size int64) (head, tail []byte) {
		head = codec.EnvelopeHead(nil, w.view.listKind(w), len(first)+len(last)+int(size))
		return append(head, first...), codec.EnvelopeTail(bytes.Clone(last))
	}
	out := Frame{Sized: true}
	out.Head, out.Tail = around(size)
	head, tail := around(0)
	out.Empty = append(head, tail...)
	return out, nil
}

func (protobuf) plain() bool { return false }

func (protobuf) json([]byte) ([]byte, error) { return nil, nil }

func (protobuf) keeps() bool   { return true }
func (protobuf) objects() bool { return true }
