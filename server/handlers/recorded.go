package handlers

import (
	"bytes"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unrecorded says in the event that an object is missing. What is recorded never changes the answer, so that there is no error.
func (c *call) unrecorded() { request.Annotate(c.ctx, audit.TruncatedAnnotation, "true") }

// recordObject records the object that the client has sent, as it was decoded: nothing may have changed it.
func (c *call) recordObject(obj runtime.Object) {
	if c.rec == nil {
		return
	}
	if m, err := meta.Accessor(obj); err == nil {
		c.rec.Sent(m)
	}
	if !c.rec.Wants(audit.Request) {
		return
	}
	encode := func() ([]byte, error) { return c.Encode(c.ctx, obj) }
	if c.Untyped() { // it may be of another kind than that of the URL
		encode = func() ([]byte, error) { return codec.Encode(obj) }
	}
	text, err := encode()
	if err != nil {
		c.unrecorded()
		return
	}
	c.rec.Request(bytes.TrimSuffix(text, []byte("\n")))
}

// recordPatch records a patch as the client has sent it. If that is not JSON, it is recorded as converted. Bytes that are not UTF-8 are
// recorded as U+FFFD, as decoders read them, so that an event is JSON for every reader.
func (c *call) recordPatch(sent, converted []byte) {
	if !c.rec.Wants(audit.Request) {
		return
	}
	if !json.Valid(sent) {
		sent = converted
	}
	if !utf8.Valid(sent) {
		sent = bytes.ToValidUTF8(sent, []byte(string(utf8.RuneError)))
	}
	c.rec.Patch(sent)
}

// recordOptions records the options in the body of a delete. As in kube-apiserver, their version is the internal one.
func (c *call) recordOptions(opts *metav1.DeleteOptions) {
	if !c.rec.Wants(audit.Request) {
		return
	}
	shown := *opts
	shown.SetGroupVersionKind(schema.GroupVersionKind{Group: metav1.GroupName, Version: apiruntime.APIVersionInternal, Kind: "DeleteOptions"})
	text, err := json.Marshal(&shown)
	if err != nil {
		c.unrecorded()
		return
	}
	c.rec.Request(text)
}

// recordAnswer records the object of an answer in the form f, which is written as text. it is the item that text was made of.
func (c *call) recordAnswer(it wire.Item, f wire.Form, text []byte) {
	if c.rec == nil {
		return
	}
	if status, is := it.Object.(*metav1.Status); is {
		response.Record(c.rec, status)
		return
	}
	if !c.rec.Wants(audit.RequestResponse) {
		return
	}
	k := &copied{c: c}
	switch {
	case f.IsPlain():
		k.add(text)
	case c.many != nil && !c.Direct(it):
		k.set(f.JSON(text)) // without the object, which another program might have to convert again
	default:
		var w wire.Writer
		w.Begin(c.ctx.Context, c.Objects, f.Plain())
		plain, err := w.Alone(new([]byte), it)
		k.set(plain, err)
	}
	k.record()
}

// recordList calls respond, which answers with the list of l in the form f, and records the list. The copy is that of the bytes of the
// answer, as far as these are JSON or another program has converted the objects; else the list is encoded for the event before.
func (c *call) recordList(l *listWriter, lm metav1.ListMeta, f wire.Form, respond func() error) error {
	if !c.rec.Wants(audit.RequestResponse) {
		return respond()
	}
	k := &copied{c: c}
	hold := l.hold
	l.hold = func(n int) error { // the answer needs the room more
		err := hold(n)
		if err != nil && k.share != nil {
			k.drop()
			err = hold(n)
		}
		return err
	}
	defer k.record() // also of an answer that is broken off
	if !f.IsPlain() && !l.isDear() || c.r.Method == http.MethodHead {
		k.encode(l, lm, f)
		return respond()
	}
	w := c.w
	c.w = k.copying(w)
	defer func() { c.w = w }()
	k.lost = true // until the answer is complete
	err := respond()
	if k.lost = k.full || err != nil; k.lost {
		return err
	}
	if w.Header().Get("Content-Encoding") == "gzip" {
		k.unzip()
	}
	if !f.IsPlain() {
		k.set(f.JSON(k.text))
	}
	return nil
}
