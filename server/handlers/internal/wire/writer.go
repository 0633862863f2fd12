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
	keys [2]any // the formKeys of an item alone and of a deleted item alone
	text []byte // a buffer for the JSON of an item
}

// Begin initializes w to write one answer in the form f, to a request with the context ctx.
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

// Within replaces the context of the request by one that ends earlier.
func (w *Writer) Within(ctx context.Context) { w.ctx = ctx }

// Context returns the context of the request.
func (w *Writer) Context() context.Context { return w.ctx }

// ContentType returns the Content-Type of an answer that is not a watch.
func (w *Writer) ContentType() string { return w.form.encoding.mediaType() }

// StreamType returns the Content-Type of a watch.
func (w *Writer) StreamType() string { return w.form.encoding.streamType() }

// Alone returns an item as the body of an answer. The bytes are in buf, or are shared and must not be changed.
func (w *Writer) Alone(buf *[]byte, it Item) ([]byte, error) {
	return w.form.encoding.alone(w, buf, it)
}

// AppendItem appends an item of a list, without a separator.
func (w *Writer) AppendItem(dst []byte, it Item) ([]byte, error) {
	return w.form.encoding.listed(w, dst, it)
}

// Between returns the separator between two items of a list.
func (w *Writer) Between() string { return w.form.encoding.between() }

// Frame returns the frame of a list of count items, which have size bytes with all separators. If the form does not use count or
// size, that argument may have any value.
func (w *Writer) Frame(lm metav1.ListMeta, count int, size int64) (Frame, error) {
	return w.form.encoding.frame(w, lm, count, size)
}

// AppendEvent appends an event of a watch, as it is written to the stream.
func (w *Writer) AppendEvent(dst []byte, kind string, it Item) ([]byte, error) {
	dst, err := w.form.encoding.event(w, dst, kind, it)
	w.view.wrote()
	return dst, err
}

// SharedForm is the form of an event whose bytes are made once and shared by all watches that send the event. It is comparable:
// for the same change, equal SharedForms have the same bytes.
type SharedForm struct{ key formKey }

// SharedForm returns the form in which SharedEvent makes an event; ok is false if the event cannot be shared.
func (w *Writer) SharedForm(kind string, it *Item) (f SharedForm, ok bool) {
	if it.Object != nil || !it.Forms.Keeps() || !w.keeps() {
		return f, false
	}
	return SharedForm{formKey{kind: w.Kind, mediaType: w.ContentType(), as: w.form.as, gone: it.Gone, event: kind}}, true
}

// SharedEvent returns the bytes that AppendEvent appends. They are shared and must not be changed.
func (w *Writer) SharedEvent(f SharedForm, it Item) ([]byte, error) {
	return it.Forms.Get(w.ctx, f.key, func() ([]byte, error) {
		const around = 128 // about the length of what is around the object in an event
		it := it
		it.fresh = true // the object alone is not cached in addition
		return w.AppendEvent(make([]byte, 0, it.Record.Body.Len()+around), f.key.event, it)
	})
}

// Message returns an event that AppendEvent has appended as the payload of a WebSocket message, and whether the message is text.
func (w *Writer) Message(event []byte) (payload []byte, text bool) {
	return w.form.encoding.socket(event)
}

// Verbatim reports whether records of the URL's version are written as their own bytes: see [Form.Verbatim].
func (w *Writer) Verbatim() bool { return w.form.Verbatim() }

// Sure reports whether no item of a list can fail. direct says that all items are records in the version of the URL.
func (w *Writer) Sure(direct bool) bool { return w.form.encoding.plain() && w.view.sure(w, direct) }

// NeedsObjects reports whether the form is made from Go objects. Every record is decoded for such a form.
func (w *Writer) NeedsObjects() bool { return w.form.encoding.objects() }

// BlockKeys returns the cache keys for the joined items of a block and for their compressed form. A key is nil if that form is
// not cached. The joined items are not cached if sure is true, because copying the bytes of records is as fast as using a cache.
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

// keeps reports whether the encodings of items are cached.
func (w *Writer) keeps() bool { return w.view.keeps() && w.form.encoding.keeps() }

// viewOf returns the view for an item. A Status is written as it is in every form.
func (w *Writer) viewOf(it *Item) view {
	if it.isStatus() {
		return whole{}
	}
	return w.view
}

// keep returns the cached encoding of an item alone. If there is none, keep calls make and caches the result.
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
	return w.kept(w.ctx, it, w.keys[i], func() ([]byte, error) {
		it := it
		it.fresh = true
		return make(it)
	})
}

// translate returns an item as a body in a format that can be made from JSON.
func (w *Writer) translate(it Item, f codec.Format, pretty bool) ([]byte, error) {
	var err error
	if w.text, err = w.viewOf(&it).alone(w, w.text[:0], it); err != nil {
		return nil, err
	}
	return f.FromJSON(w.text, pretty)
}

// list makes the JSON of an item of a list, in w.text.
func (w *Writer) list(it Item) (err error) {
	w.text, err = w.view.listed(w, w.text[:0], it)
	return err
}

// laidOut returns the frame of a list in a text form other than compact JSON: around is the list with an empty array, to be cut
// in two. empty is the list without items.
func (w *Writer) laidOut(lm metav1.ListMeta, f codec.Format, pretty bool) (around, empty []byte, err error) {
	text := w.view.frame(w, lm)
	if empty, err = f.FromJSON(text.Empty, pretty); err != nil {
		return nil, nil, err
	}
	around, err = f.FromJSON(append(bytes.Clone(text.Head), text.Tail...), pretty)
	return around, empty, err
}
