package handlers

import (
	"bytes"
	"iter"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// respondOne answers with one object, in the form f.
func (c *call) respondOne(code int, it item, f form) error {
	if f.isProtobuf() {
		return c.respondMessage(code, it, f)
	}
	buf := c.takeBuffer()
	text, err := c.appendOne(*buf, it, f)
	*buf = text
	if err == nil {
		err = c.respondText(code, text, f)
	}
	c.giveBuffer(buf) // not when a write has failed: one of HTTP/2 may be reading it still
	return err
}

func (c *call) appendOne(dst []byte, it item, f form) ([]byte, error) {
	if _, isStatus := it.obj.(*metav1.Status); f.isTable() && !isStatus {
		return c.newTable(f).appendAlone(dst, c.ctx, it)
	}
	return c.appendForm(dst, it, f)
}

// respondList answers with a list, in the form f. If it is sure that no item can fail they are written as they are
// made, else all are made first.
func (c *call) respondList(code int, lm metav1.ListMeta, items iter.Seq[item], f form, sure bool) error {
	if f.isProtobuf() {
		return c.respondMessages(code, lm, items, f)
	}
	buf, err := c.takeBuffer(), error(nil)
	l := c.listText(lm, f)
	if sure && f.Format.MediaType() == "application/json" && !f.Pretty {
		c.stream(code, l, items, f, buf)
	} else if *buf, err = l.appendAll(*buf, items); err == nil {
		err = c.respondText(code, *buf, f)
	}
	c.giveBuffer(buf) // as in respondOne
	return err
}

// appendAll appends the whole list.
func (l listText) appendAll(text []byte, items iter.Seq[item]) ([]byte, error) {
	text = append(text, l.head...)
	comma := false
	for it := range items {
		if comma {
			text = append(text, ',')
		}
		comma = true
		var err error
		if text, err = l.item(text, it); err != nil {
			return text, err
		}
	}
	return l.end(text, comma), nil
}

// listPart is about how much of a long list is made between two writes: with less, the time goes into waking whoever
// waits at either end of the connection.
const listPart = 256 << 10

// stream writes a list while it is made. What fails here fails after the first byte.
func (c *call) stream(code int, l listText, items iter.Seq[item], f form, buf *[]byte) {
	out := c.newBody(code, f.Format.MediaType())
	defer out.close()
	text := append((*buf)[:0], l.head...)
	comma, part := false, gzipThreshold
	for it := range items {
		if comma {
			text = append(text, ',')
		}
		comma = true
		var err error
		if text, err = l.item(text, it); err != nil {
			panic(http.ErrAbortHandler)
		}
		if len(text) > part {
			out.write(text)
			text, part = text[:0], listPart
		}
	}
	text = append(l.end(text, comma), '\n')
	*buf = text
	out.end(text)
}

// listText is what a list is written from: item appends one item, head and tail go around them. null says that a list
// without items has null for them.
type listText struct {
	head, tail []byte
	null       bool
	item       func(dst []byte, it item) ([]byte, error)
}

// end appends what comes after the last item of text, or where there is none after the head, which ends with '['.
func (l listText) end(text []byte, items bool) []byte {
	if l.null && !items {
		text = append(text[:len(text)-1], "null"...)
		return append(text, l.tail[1:]...)
	}
	return append(text, l.tail...)
}

func (c *call) listText(lm metav1.ListMeta, f form) listText {
	gv := f.As.GroupVersion()
	switch {
	case f.isTable():
		t := c.newTable(f)
		return listText{
			head: t.appendHead(nil, lm), tail: []byte("]}"),
			item: func(dst []byte, it item) ([]byte, error) { return t.appendRow(dst, c.ctx, it) },
		}
	case f.isPartial():
		head := appendListMeta(appendHead(nil, gv.WithKind("PartialObjectMetadataList")), lm)
		return listText{
			head: append(head, `,"items":[`...), tail: []byte("]}"), null: true, // as kube-apiserver has it, for this form alone
			item: func(dst []byte, it item) ([]byte, error) { return c.appendPartial(dst, it, gv) },
		}
	}
	if c.untyped() {
		return c.untypedList(lm)
	}
	head := appendListMeta(appendHead(nil, c.kind.GroupVersion().WithKind(c.kind.Kind+"List")), lm)
	return listText{head: append(head, `,"items":[`...), tail: []byte("]}"), item: c.appendListed}
}

// appendListMeta appends the metadata of a list: its fields in order, those without a value left out.
func appendListMeta(dst []byte, lm metav1.ListMeta) []byte {
	dst = append(dst, '{')
	comma := func() {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
	}
	if lm.ResourceVersion != "" {
		dst = appendString(append(dst, `"resourceVersion":`...), lm.ResourceVersion)
	}
	if lm.Continue != "" {
		comma()
		dst = appendString(append(dst, `"continue":`...), lm.Continue)
	}
	if lm.RemainingItemCount != nil {
		comma()
		dst = strconv.AppendInt(append(dst, `"remainingItemCount":`...), *lm.RemainingItemCount, 10)
	}
	return append(dst, '}')
}

// respondText answers with JSON text, of one value without a newline at its end, in the format of f.
func (c *call) respondText(code int, text []byte, f form) error {
	if f.Format.MediaType() == "application/json" && !f.Pretty {
		text = append(text, '\n')
	} else {
		var err error
		if text, err = f.Format.FromJSON(text, f.Pretty); err != nil {
			return err
		}
	}
	out := c.newBody(code, f.Format.MediaType())
	defer out.close()
	out.end(text)
	return nil
}

func trimNewline(b []byte) []byte { return bytes.TrimSuffix(b, []byte("\n")) }

// eachObject walks the items of a list object.
func eachObject(list []apiruntime.Object) iter.Seq[item] {
	return func(yield func(item) bool) {
		for _, obj := range list {
			if !yield(item{obj: obj}) {
				return
			}
		}
	}
}
