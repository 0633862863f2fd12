package handlers

import (
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/server/request"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// respondOne answers with one object, in the form f.
func (c *call) respondOne(code int, it wire.Item, f wire.Form) error {
	a := new(struct {
		wire.Writer
		body
	})
	a.Begin(c.ctx.Context, c.Objects, f)
	buf := c.takeBuffer()
	began := time.Now()
	it = c.converted(c.ctx, c.remembered(it))
	text, err := a.Alone(buf, it)
	request.Took(c.ctx, request.Encoding, began)
	if err == nil {
		c.recordAnswer(it, f, text)
		c.respondBytes(&a.body, code, a.ContentType(), text)
	}
	a.Writer = wire.Writer{} // net/http keeps the body: see body.close
	c.giveBuffer(buf)        // not after a failed write, because HTTP/2 may still read buf
	return err
}

// respondBytes answers with text as the body. out is the memory for the body.
func (c *call) respondBytes(out *body, code int, contentType string, text []byte) {
	c.beginBody(out, code, contentType, int64(len(text)))
	defer out.close()
	out.write(text)
	out.end()
}

// respondList answers with a list, in the form f.
func (c *call) respondList(lm metav1.ListMeta, src source, f wire.Form) error {
	began, latency := time.Now(), request.LatencyFrom(c.ctx)
	before := latency.Of(request.Writing) + latency.Of(request.Storing)
	err := c.writeList(lm, src, f)
	latency.Add(request.Encoding, time.Since(began)-latency.Of(request.Writing)-latency.Of(request.Storing)+before)
	return err
}

// writeList writes a list, in the form f, and records it.
func (c *call) writeList(lm metav1.ListMeta, src source, f wire.Form) error {
	l := c.newListWriter(f, src)
	return c.recordList(l, lm, f, func() error {
		buf := c.takeBuffer()
		err := l.respond(c, lm, buf)
		c.giveBuffer(buf) // as in respondOne
		return err
	})
}

// remembered returns an item that is stored in the hub version. If the call has cached the object in the version of the URL, the
// item uses that object.
func (c *call) remembered(it wire.Item) wire.Item {
	hub, ok := c.scheme.Hub(c.Kind.GroupKind())
	if !ok || it.Gone || !c.isConverted(it) || !it.Record.Body.InVersion(hub.GroupVersion().String()) || !c.ctx.HasForms() {
		return it
	}
	rec := it
	it.Made = func() (runtime.Object, error) {
		obj, err := c.Object(rec)
		if err == nil {
			obj, err = c.shown(c.ctx, obj)
		}
		if err != nil { // so that the error is the same as for other reads
			return c.Object(c.converted(c.ctx, rec))
		}
		return obj, nil
	}
	return it
}
