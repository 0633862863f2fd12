package handlers

import (
	"bytes"
	"encoding/json"

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

// recordedMost bounds a list in an audit event, in bytes. The event of a longer list has the annotation of truncated events instead.
const recordedMost = 16 << 20

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
	if text, err := encode(); err == nil {
		c.rec.Request(bytes.TrimSuffix(text, []byte("\n")))
	}
}

// recordPatch records a patch as the client has sent it. If that is not JSON, it is recorded as converted.
func (c *call) recordPatch(sent, converted []byte) {
	if !c.rec.Wants(audit.Request) {
		return
	}
	if !json.Valid(sent) {
		sent = converted
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
	if text, err := json.Marshal(&shown); err == nil {
		c.rec.Request(text)
	}
}

// recordAnswer records the object of an answer in the form f, which is written as text.
func (c *call) recordAnswer(it wire.Item, f wire.Form, text []byte) error {
	if c.rec == nil {
		return nil
	}
	if status, is := it.Object.(*metav1.Status); is {
		response.Record(c.rec, status)
		return nil
	}
	if !c.rec.Wants(audit.RequestResponse) {
		return nil
	}
	if f.IsPlain() {
		c.rec.Response(bytes.Clone(bytes.TrimSuffix(text, []byte("\n")))) // the text is in a buffer
		return nil
	}
	var w wire.Writer
	w.Begin(c.ctx.Context, c.Objects, f.Plain())
	text, err := w.Alone(new([]byte), c.converted(c.ctx, c.remembered(it)))
	if err == nil {
		c.rec.Response(bytes.TrimSuffix(text, []byte("\n")))
	}
	return err
}

// recordList records the list of an answer in the form f, and returns it as JSON, or nil if it is not recorded.
func (c *call) recordList(lm metav1.ListMeta, src source, f wire.Form) ([]byte, error) {
	if !c.rec.Wants(audit.RequestResponse) {
		return nil, nil
	}
	text, err := c.newListWriter(f.Plain(), src).whole(lm, recordedMost)
	switch {
	case err != nil:
		return nil, err
	case text == nil:
		request.Annotate(c.ctx, audit.TruncatedAnnotation, "true")
	default:
		c.rec.Response(bytes.TrimSuffix(text, []byte("\n")))
	}
	return text, nil
}
