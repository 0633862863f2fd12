package handlers

import (
	"context"

	"github.com/keelson-dev/keelson/runtime/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// encoding makes the bytes of objects in the form that was asked for. It is made for one answer, and one goroutine uses it.
type encoding struct {
	*endpoint
	form
	ctx   context.Context
	table *table                // nil: no Table
	proto *codec.ProtobufFormat // nil: not in protobuf
	keys  [2]any                // formKeys of an object alone: as it is, and as deleted
	text  []byte                // scratch
}

func (c *call) newEncoding(f form) *encoding {
	a := new(encoding)
	c.beginEncoding(a, f)
	return a
}

// beginEncoding is newEncoding in a place of the caller's.
func (c *call) beginEncoding(a *encoding, f form) {
	*a = encoding{endpoint: c.endpoint, form: f, ctx: c.ctx.Context}
	a.proto, _ = f.Format.(*codec.ProtobufFormat)
	if f.isTable() {
		a.table = c.newTable(f)
	}
}

// shape is what of a form's bytes a formKey stands for.
type formShape uint8

const (
	alone      formShape = iota // an object as a body of its own
	listed                      // the items of a list, with what comes between them
	compressed                  // the same, as a gzipparts.Part
)

// plain reports whether the form is JSON without indentation, of which no more is kept than what has to be converted.
func (a *encoding) plain() bool { return a.Format.MediaType() == "application/json" && !a.Pretty }

// alone is an item as a body of its own, in a form that is not plain. The bytes may be shared.
func (a *encoding) alone(it item) ([]byte, error) {
	if a.table != nil || a.Pretty || isStatus(it) {
		return a.make(it)
	}
	return a.kept(it, a.key(it.gone), func() ([]byte, error) { return a.make(it) })
}

// key is the formKey of an object alone.
func (a *encoding) key(gone bool) any {
	i := 0
	if gone {
		i = 1
	}
	if a.keys[i] == nil {
		a.keys[i] = formKey{kind: a.kind, mediaType: a.Format.MediaType(), as: a.As, gone: gone}
	}
	return a.keys[i]
}

// make makes the body of an item; nothing that is kept is used.
func (a *encoding) make(it item) ([]byte, error) {
	if a.proto != nil {
		return a.envelope(it)
	}
	var err error
	switch {
	case a.table != nil && !isStatus(it):
		a.text, err = a.table.appendAlone(a.text[:0], a.ctx, it)
	case a.isPartial() && !isStatus(it):
		a.text, err = a.appendPartial(a.text[:0], it, a.As.GroupVersion())
	case a.direct(it):
		a.text = it.rec.Body.AppendObject(a.text[:0], it.rec.Revision)
	default:
		a.text, err = a.convert(it)
	}
	if err != nil {
		return nil, err
	}
	return a.Format.FromJSON(a.text, a.Pretty)
}

// appendText appends the JSON of an item alone, without the newline that ends a body.
func (a *encoding) appendText(dst []byte, it item) ([]byte, error) {
	switch {
	case isStatus(it):
	case a.table != nil:
		return a.table.appendAlone(dst, a.ctx, it)
	case a.isPartial():
		return a.appendPartial(dst, it, a.As.GroupVersion())
	}
	return a.appendWhole(dst, it)
}

// appendEvent appends an event of a watch, as it is framed in the form.
func (a *encoding) appendEvent(dst []byte, kind string, it item) ([]byte, error) {
	if a.table != nil {
		defer a.table.headless()
	}
	if a.Format.MediaType() == "application/json" {
		dst, err := a.appendText(appendEventHead(dst, kind), it)
		return append(dst, "}\n"...), err
	}
	object, err := a.alone(it)
	if err != nil {
		return dst, err
	}
	if a.proto != nil {
		return codec.AppendWatchFrame(dst, kind, object), nil
	}
	// https://www.rfc-editor.org/rfc/rfc8742: one data item after the other.
	dst = codec.AppendCBORMap(codec.AppendCBORTag(dst), 2)
	dst = codec.AppendCBORString(codec.AppendCBORString(dst, "type"), kind)
	return append(codec.AppendCBORString(dst, "object"), object...), nil
}

func appendEventHead(dst []byte, kind string) []byte {
	return append(appendString(append(dst, `{"type":`...), kind), `,"object":`...)
}

// appendItem appends an item as one of a list, without what comes between two.
func (a *encoding) appendItem(dst []byte, it item) ([]byte, error) {
	if a.proto != nil {
		return a.appendMessageItem(dst, it)
	}
	if a.plain() {
		return a.appendItemText(dst, it)
	}
	var err error
	if a.text, err = a.appendItemText(a.text[:0], it); err != nil {
		return dst, err
	}
	switch {
	case codec.IsCBOR(a.Format):
		return codec.AppendCBOR(dst, a.text)
	case a.Format.MediaType() == "application/yaml":
		return codec.AppendYAMLItem(dst, a.text)
	}
	return codec.AppendIndented(append(dst, itemIndent...), a.text, itemIndent)
}

const itemIndent = "    " // of an item in a list that is laid out on lines

// appendItemText appends the JSON of an item of a list.
func (a *encoding) appendItemText(dst []byte, it item) ([]byte, error) {
	switch {
	case a.table != nil:
		return a.table.appendRow(dst, a.ctx, it)
	case a.isPartial():
		return a.appendPartial(dst, it, a.As.GroupVersion())
	}
	return a.appendListed(dst, it)
}

func isStatus(it item) bool {
	_, is := it.obj.(*metav1.Status)
	return is
}
