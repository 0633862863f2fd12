package wire

import (
	"bytes"
	"context"

	"github.com/keelson-dev/keelson/runtime/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Writer writes one answer in one form. One goroutine uses it.
type Writer struct {
	*Objects
	form Form
	view view
	ctx  context.Context
	keys [2]any // formKeys of an item alone: as it is, and as deleted
	text []byte // scratch: the JSON of an item
}

// Begin makes w the Writer of an answer to a request with the context ctx.
func (w *Writer) Begin(ctx context.Context, o *Objects, f Form) {
	*w = Writer{Objects: o, form: f, ctx: ctx}
	switch f.as.Kind {
	case "":
		w.view = whole{}
	case tableKind:
		w.view = o.newTable()
	default:
		w.view = partial{}
	}
}

// Context is that of the request.
func (w *Writer) Context() context.Context { return w.ctx }

// ContentType is that of the answer, StreamType that of a watch.
func (w *Writer) ContentType() string { return w.form.encoding.mediaType() }

// StreamType is the Content-Type of a watch.
func (w *Writer) StreamType() string { return w.form.encoding.streamType() }

// Alone returns an item as the body of an answer. It is made in buf, or consists of bytes that are shared and must not be changed.
func (w *Writer) Alone(buf *[]byte, it Item) ([]byte, error) {
	return w.form.encoding.alone(w, buf, it)
}

// AppendItem appends an item as one of a list, without what comes between two.
func (w *Writer) AppendItem(dst []byte, it Item) ([]byte, error) {
	return w.form.encoding.listed(w, dst, it)
}

// Between is what goes between two items of a list.
func (w *Writer) Between() string { return w.form.encoding.between() }

// Frame returns the frame of a list of count items, which have size bytes with all that is between them. What of these the form
// has no use for may be anything.
func (w *Writer) Frame(lm metav1.ListMeta, count int, size int64) (Frame, error) {
	return w.form.encoding.frame(w, lm, count, size)
}

// AppendEvent appends an event of a watch, as it is framed in the stream.
func (w *Writer) AppendEvent(dst []byte, kind string, it Item) ([]byte, error) {
	dst, err := w.form.encoding.event(w, dst, kind, it)
	w.view.wrote()
	return dst, err
}

// SharedForm is the form of an event that is made once for all who send it. It is comparable: of the same change, equal ones are the
// same bytes.
type SharedForm struct{ key formKey }

// SharedForm returns the form of an event that SharedEvent makes once for all who send it; ok says that it does.
func (w *Writer) SharedForm(kind string, it *Item) (f SharedForm, ok bool) {
	if it.Object != nil || !it.Forms.Keeps() || !w.keeps() {
		return f, false
	}
	return SharedForm{formKey{kind: w.Kind, mediaType: w.ContentType(), as: w.form.as, gone: it.Gone, event: kind}}, true
}

// SharedEvent returns what AppendEvent appends, as bytes that are shared and must not be changed.
func (w *Writer) SharedEvent(f SharedForm, it Item) ([]byte, error) {
	return it.Forms.Get(f.key, func() ([]byte, error) {
		const around = 128 // the object in the event
		it := it
		it.fresh = true // the object alone is not kept as well
		return w.AppendEvent(make([]byte, 0, it.Record.Body.Len()+around), f.key.event, it)
	})
}

// Message returns what AppendEvent has appended as the payload of a message of a WebSocket, and whether that is text.
func (w *Writer) Message(event []byte) (payload []byte, text bool) {
	return w.form.encoding.socket(event)
}

// Verbatim is that of the form.
func (w *Writer) Verbatim() bool { return w.form.Verbatim() }

// Sure reports whether no item of a list can fail. direct says that all items are records in the version of the URL.
func (w *Writer) Sure(direct bool) bool { return w.form.encoding.plain() && w.view.sure(w, direct) }

// NeedsObjects reports whether the form is made of Go objects, for which every record is decoded.
func (w *Writer) NeedsObjects() bool { return w.form.encoding.objects() }

// BlockKeys returns the keys under which a block of a list keeps its items, joined and compressed; nil for each that is not kept,
// as the joined items of which nothing can fail are not: they are made of bytes as fast as they are copied.
func (w *Writer) BlockKeys(sure bool) (text, zip any) {
	if !w.keeps() {
		return nil, nil
	}
	key := formKey{kind: w.Kind, mediaType: w.ContentType(), as: w.form.as, extent: compressed}
	zip = key
	if !sure {
		key.extent = joined
		text = key
	}
	return text, zip
}

// keeps reports whether what is made of an item is kept.
func (w *Writer) keeps() bool { return w.view.keeps() && w.form.encoding.keeps() }

// viewOf is the view of an item: a Status is shown as itself in every form.
func (w *Writer) viewOf(it *Item) view {
	if it.isStatus() {
		return whole{}
	}
	return w.view
}

// keep returns what make makes of an item alone, or what was made of it before.
func (w *Writer) keep(it Item, make func(it Item) ([]byte, error)) ([]byte, error) {
	if !w.keeps() || it.isStatus() {
		return make(it)
	}
	i := 0
	if it.Gone {
		i = 1
	}
	if w.keys[i] == nil {
		w.keys[i] = formKey{kind: w.Kind, mediaType: w.ContentType(), as: w.form.as, gone: it.Gone}
	}
	return w.kept(it, w.keys[i], func() ([]byte, error) {
		it := it
		it.fresh = true
		return make(it)
	})
}

// translate returns an item as a body in a format that JSON can be made into.
func (w *Writer) translate(it Item, f codec.Format, pretty bool) ([]byte, error) {
	var err error
	if w.text, err = w.viewOf(&it).alone(w, w.text[:0], it); err != nil {
		return nil, err
	}
	return f.FromJSON(w.text, pretty)
}

// list makes the JSON of an item of a list, and leaves it in text.
func (w *Writer) list(it Item) (err error) {
	w.text, err = w.view.listed(w, w.text[:0], it)
	return err
}

// laidOut returns the frame of a list in a text form other than that of the view: around the brackets of no items, and empty.
func (w *Writer) laidOut(lm metav1.ListMeta, f codec.Format, pretty bool) (around, empty []byte, err error) {
	text := w.view.frame(w, lm)
	if empty, err = f.FromJSON(text.Empty, pretty); err != nil {
		return nil, nil, err
	}
	around, err = f.FromJSON(append(bytes.Clone(text.Head), text.Tail...), pretty)
	return around, empty, err
}
