package handlers

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/runtime/codec"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// listFrame is what goes around the items of a list: head and tail. A list without items is empty instead.
type listFrame struct{ head, tail, empty []byte }

// between is what goes between two items.
func (a *encoding) between() []byte {
	switch {
	case a.plain():
		return []byte(",")
	case a.Pretty && a.Format.MediaType() == "application/json":
		return []byte(",\n")
	}
	return nil // protobuf, CBOR; items of YAML end their lines
}

// frame makes the frame of a list of count items, which have size bytes in all. What of these the form has no use for may be
// anything.
func (a *encoding) frame(lm metav1.ListMeta, count int, size int64) (listFrame, error) {
	switch {
	case a.proto != nil:
		return a.messageFrame(lm, size)
	case codec.IsCBOR(a.Format):
		return a.cborFrame(lm, count)
	}
	text := a.textFrame(lm)
	if a.plain() {
		return text, nil
	}
	return a.laidOut(text)
}

// listKind is the kind that a list says it is.
func (a *encoding) listKind() schema.GroupVersionKind {
	if a.isPartial() {
		return a.As.GroupVersion().WithKind("PartialObjectMetadataList")
	}
	if a.known != nil {
		return a.known.ListGVK
	}
	return a.kind.GroupVersion().WithKind(a.kind.Kind + "List")
}

// textFrame is the frame in JSON without indentation.
func (a *encoding) textFrame(lm metav1.ListMeta) listFrame {
	switch {
	case a.table != nil:
		head := a.table.appendHead(nil, lm)
		return listFrame{head: head, tail: []byte("]}\n"), empty: append(bytes.Clone(head), "]}\n"...)}
	case a.isPartial():
		head := append(appendListMeta(appendHead(nil, a.listKind()), lm), `,"items":`...)
		// A list without items has null, as kube-apiserver has it for this form alone.
		return listFrame{head: append(bytes.Clone(head), '['), tail: []byte("]}\n"), empty: append(head, "null}\n"...)}
	case a.untyped():
		return a.untypedFrame(lm)
	}
	head := append(appendListMeta(appendHead(nil, a.listKind()), lm), `,"items":[`...)
	return listFrame{head: head, tail: []byte("]}\n"), empty: append(bytes.Clone(head), "]}\n"...)}
}

// laidOut is a frame in JSON made into one of another text form: on lines, as YAML or with indentation.
func (a *encoding) laidOut(text listFrame) (listFrame, error) {
	empty, err := a.Format.FromJSON(text.empty, a.Pretty)
	if err != nil {
		return listFrame{}, err
	}
	around, err := a.Format.FromJSON(append(bytes.Clone(text.head), text.tail...), a.Pretty)
	if err != nil {
		return listFrame{}, err
	}
	name := "items"
	if a.table != nil {
		name = "rows"
	}
	// The member is at the left margin of its level, where text inside of a value cannot be.
	if a.Format.MediaType() == "application/json" {
		head, tail, ok := bytes.Cut(around, []byte("\n  \""+name+"\": []"))
		if ok {
			return listFrame{
				head: slices.Concat(head, []byte("\n  \""+name+"\": [\n")), tail: slices.Concat([]byte("\n  ]"), tail), empty: empty,
			}, nil
		}
	} else if head, tail, ok := bytes.Cut(around, []byte("\n"+name+": []\n")); ok {
		return listFrame{head: slices.Concat(head, []byte("\n"+name+":\n")), tail: tail, empty: empty}, nil
	}
	return listFrame{}, fmt.Errorf("the list of %s has no member %s in %s", a.path(), name, a.Format.MediaType())
}

// cborFrame is the frame in CBOR: a map with its keys by length, as all maps have them.
func (a *encoding) cborFrame(lm metav1.ListMeta, count int) (listFrame, error) {
	gvk := a.listKind()
	metadata := appendListMeta(nil, lm)
	if a.untyped() && !a.isPartial() {
		metadata = appendUntypedListMeta(nil, lm)
	}
	head := codec.AppendCBORMap(codec.AppendCBORTag(nil), 4)
	head = codec.AppendCBORString(codec.AppendCBORString(head, "kind"), gvk.Kind)
	head = codec.AppendCBORString(head, "items")
	tail, err := codec.AppendCBOR(codec.AppendCBORString(nil, "metadata"), metadata)
	if err != nil {
		return listFrame{}, err
	}
	tail = codec.AppendCBORString(codec.AppendCBORString(tail, "apiVersion"), gvk.GroupVersion().String())
	none := codec.AppendCBORArray(bytes.Clone(head), 0)
	if a.isPartial() {
		if none, err = codec.AppendCBOR(bytes.Clone(head), []byte("null")); err != nil {
			return listFrame{}, err
		}
	}
	return listFrame{head: codec.AppendCBORArray(head, count), tail: tail, empty: append(none, tail...)}, nil
}

// messageFrame is the frame in protobuf, whose envelope says how long the list is.
func (a *encoding) messageFrame(lm metav1.ListMeta, size int64) (listFrame, error) {
	metadata, items := a.listFields()
	message, err := lm.Marshal()
	if err != nil {
		return listFrame{}, err
	}
	first := protowire.AppendBytes(protowire.AppendTag(nil, metadata, protowire.BytesType), message)
	var last []byte
	if metadata > items {
		first, last = nil, first
	}
	around := func(size int64) (head, tail []byte) {
		head = codec.EnvelopeHead(nil, a.listKind(), len(first)+len(last)+int(size))
		return append(head, first...), codec.EnvelopeTail(bytes.Clone(last))
	}
	var out listFrame
	out.head, out.tail = around(size)
	head, tail := around(0)
	out.empty = append(head, tail...)
	return out, nil
}

// untypedFrame is the frame of a list of a kind without a Go type: its members in alphabetical order, as those of its items.
func (a *encoding) untypedFrame(lm metav1.ListMeta) listFrame {
	head := append(appendString([]byte(`{"apiVersion":`), a.version), `,"items":[`...)
	tail := appendString([]byte(`],"kind":`), a.listKind().Kind)
	tail = append(appendUntypedListMeta(append(tail, `,"metadata":`...), lm), "}\n"...)
	return listFrame{head: head, tail: tail, empty: slices.Concat(head, tail)}
}

// appendUntypedListMeta is appendListMeta for a kind without a Go type, of which kube-apiserver always shows a continue.
func appendUntypedListMeta(dst []byte, lm metav1.ListMeta) []byte {
	dst = appendString(append(dst, `{"continue":`...), lm.Continue)
	if lm.RemainingItemCount != nil {
		dst = fmt.Appendf(dst, `,"remainingItemCount":%d`, *lm.RemainingItemCount)
	}
	if lm.ResourceVersion != "" {
		dst = appendString(append(dst, `,"resourceVersion":`...), lm.ResourceVersion)
	}
	return append(dst, '}')
}
