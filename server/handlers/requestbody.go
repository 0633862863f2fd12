package handlers

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/request"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bodyFormat returns the format that the Content-Type header names. For a kind without a Go type, the error about an unknown
// format names protobuf too, as in kube-apiserver, and protobuf is refused before a body is read, which kube-apiserver reads.
func (c *call) bodyFormat() (codec.Format, error) {
	contentType, own := c.r.Header.Get("Content-Type"), c.forms.Own()
	f, ok := codec.NegotiateBody(contentType, own)
	if ok {
		return f, nil
	}
	if _, known := codec.NegotiateBody(contentType, c.Resource.formats); c.custom() && !known {
		own = c.Resource.formats
	}
	return nil, codec.UnsupportedMediaType(codec.MediaTypes(own))
}

// deleteFormat returns the format of the options of a delete. Unlike for bodyFormat, protobuf is accepted for every kind, because
// DeleteOptions has a protobuf form.
func (c *call) deleteFormat() (codec.Format, error) {
	formats := c.Resource.formats
	f, ok := codec.NegotiateBody(c.r.Header.Get("Content-Type"), formats)
	if !ok {
		return nil, codec.UnsupportedMediaType(codec.MediaTypes(formats))
	}
	return f, nil
}

// readBody reads the request body, up to the limit.
func (c *call) readBody() ([]byte, error) {
	if c.r.Body == nil { // a request made in process
		return nil, nil
	}
	defer request.Took(c.ctx, request.Receiving, time.Now())
	if c.maxBody > 0 && c.r.ContentLength > c.maxBody {
		return nil, tooLarge(c.maxBody)
	}
	in := io.Reader(c.r.Body)
	switch n := c.r.ContentLength; {
	case c.budget == nil:
	case n >= 0:
		if err := c.holdBody(n); err != nil {
			return nil, err
		}
	default:
		in = &countedBody{Reader: in, c: c}
	}
	if c.maxBody > 0 {
		in = io.LimitReader(in, c.maxBody+1)
	}
	body, err := io.ReadAll(in)
	var limited *http.MaxBytesError
	switch {
	case errors.As(err, &limited):
		return nil, tooLarge(limited.Limit)
	case apierrors.IsTooManyRequests(err):
		return nil, err
	case c.maxBody > 0 && int64(len(body)) > c.maxBody:
		return nil, tooLarge(c.maxBody)
	case err != nil && c.ctx.Err() != nil:
		return nil, c.ctx.Err()
	case err != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("unable to read the request body: %v", err))
	}
	if c.hooks.Body != nil {
		c.hooks.Body(c.info.Verb, len(body))
	}
	return body, nil
}

func tooLarge(limit int64) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
}

// decode decodes a body into an object of the URL's version. It warns of unknown and duplicate fields, or refuses the body if v
// is Strict.
func (c *call) decode(f codec.Format, body []byte, v codec.Validation) (runtime.Object, error) {
	defer request.Took(c.ctx, request.Decoding, time.Now())
	if c.Untyped() {
		d, err := c.decodeUntyped(f, body, v)
		if err == nil {
			c.recordObject(d.Object)
			c.judgeKind(d)
			c.warnAll(d.Problems)
		}
		return d.Object, err
	}
	d, err := codec.DecodeWithin(c.scheme, f, body, c.Kind, v, c.limits())
	if gv := d.GVK.GroupVersion(); d.GVK != c.Kind && d.GVK.Kind == c.Kind.Kind && c.scheme.Lookup(d.GVK) != nil {
		return nil, wrongVersion(gv, c.Kind.GroupVersion())
	}
	if err != nil {
		return nil, c.decodeError(err, d.GVK, body)
	}
	if d.GVK != c.Kind {
		return nil, c.decodeError(fmt.Errorf("the object is a %s", d.GVK.Kind), d.GVK, body)
	}
	if len(d.Problems) > 0 {
		if v == codec.Strict {
			return nil, c.decodeError(codec.StrictError(d.Problems), d.GVK, body)
		}
		c.warnAll(d.Problems)
	}
	c.recordObject(d.Object)
	return d.Object, nil
}

func isBeyondLimit(err error) bool {
	var over *codec.LimitError
	return errors.As(err, &over)
}

// beyondLimit returns the error for a body that is beyond a limit, or for which the budget has no room. It returns nil if err is
// any other error.
func (c *call) beyondLimit(err error) error {
	if why := statusIn(err); why != nil {
		return why
	}
	var over *codec.LimitError
	switch {
	case !errors.As(err, &over):
		return nil
	case over.Field == "":
		return apierrors.NewRequestEntityTooLargeError(over.Error())
	}
	path := field.NewPath(over.Field)
	return apierrors.NewInvalid(c.Kind.GroupKind(), c.name, field.ErrorList{field.TooMany(path, over.Most+1, over.Most)})
}

func wrongVersion(got, want schema.GroupVersion) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", got, want))
}

// decodeError returns the error that tells the client why its body is not an object of the kind.
func (c *call) decodeError(err error, gvk schema.GroupVersionKind, body []byte) error {
	if why := statusIn(err); why != nil {
		return why
	}
	if over := c.beyondLimit(err); over != nil {
		return over
	}
	if gvk.Kind != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, c.Kind.Kind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", c.Kind.Kind, err, summary(body)))
}

// summary returns the beginning of a body that could not be decoded.
func summary(body []byte) string {
	const most = 30
	head, more := body, ""
	if len(body) > most {
		head, more = body[:most], " ..."
	}
	switch {
	case len(body) == 0:
		return "<empty>"
	case body[0] == '{':
		return string(head) + more
	}
	return hex.EncodeToString(head) + more
}

// warnAll warns of each problem. The duplicate keys of a YAML body are one error with a heading and a line for each key. They
// become one warning for each key.
func (c *call) warnAll(problems []error) {
	for _, p := range problems {
		text := p.Error()
		if _, lines, ok := strings.Cut(text, "yaml: unmarshal errors:\n"); ok {
			for line := range strings.SplitSeq(lines, "\n") {
				c.ctx.Warn(strings.TrimSpace(line))
			}
			continue
		}
		c.ctx.Warn(text)
	}
}

// matchNamespace sets the namespace of a body's object to that of the request. It returns an error if the body names another
// namespace.
func (c *call) matchNamespace(obj metav1.Object) error {
	want := c.namespace
	switch {
	case want == "": // cluster-scoped
		obj.SetNamespace("")
	case obj.GetNamespace() == "":
		obj.SetNamespace(want)
	case obj.GetNamespace() != want:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// matchName returns an error if the name of an object is not the name in the URL.
func (c *call) matchName(obj metav1.Object) error {
	switch got := obj.GetName(); {
	case got == "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", c.name))
	case got != c.name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", got, c.name))
	}
	return nil
}

// accessor is meta.Accessor for objects that decode returned. It fails only for a broken kind: every kind in a scheme has
// metadata.
func accessor(obj runtime.Object) (metav1.Object, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return m, nil
}

// decodeUntyped decodes a body into an object of a kind without a Go type. The body must contain its kind and apiVersion.
func (c *call) decodeUntyped(f codec.Format, body []byte, v codec.Validation) (codec.Decoded, error) {
	d, err := codec.DecodeWithin(c.scheme, f, body, c.Kind, v, c.limits())
	switch {
	case err != nil:
		return d, c.decodeError(err, d.GVK, body)
	case len(d.Problems) > 0 && v == codec.Strict:
		return d, c.decodeError(codec.StrictError(d.Problems), d.GVK, body)
	case d.GVK.GroupVersion() != c.Kind.GroupVersion():
		c.warnAll(d.Problems)
		return d, wrongVersion(d.GVK.GroupVersion(), c.Kind.GroupVersion())
	}
	return d, nil
}

// judgeKind sets unfit if a decoded object without a Go type is of another kind or version than the endpoint's, and gives it that
// kind. This mistake is found after others. In a request to a subresource it is none, because the object is not stored; a refusal names
// the kind of the URL, and in kube-apiserver that of the body.
func (c *call) judgeKind(d codec.Decoded) {
	c.unfit = nil
	if d.GVK == c.Kind {
		return
	}
	if c.sub == "" {
		c.unfit = c.otherKind(d)
	}
	d.Object.GetObjectKind().SetGroupVersionKind(c.Kind)
}

// otherKind returns the error for a decoded object of another kind or version. It does not name the other mistakes of the object.
func (e *endpoint) otherKind(d codec.Decoded) *registry.UnfitError {
	var errs field.ErrorList
	if got, want := d.GVK.Kind, e.Kind.Kind; got != want {
		errs = append(errs, field.Invalid(field.NewPath("kind"), got, fmt.Sprintf("must be %s", want)))
	}
	if got, want := d.GVK.GroupVersion().String(), e.Version; got != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), got, fmt.Sprintf("must be %s", want)))
	}
	name := ""
	if m, err := meta.Accessor(d.Object); err == nil {
		name = m.GetName()
	}
	return &registry.UnfitError{Object: d.Object, Kind: d.GVK.GroupKind(), Name: name, Problems: errs}
}

// sameUID returns an error if a patch changes the uid of the object; a RecordUpdater finds that itself. The patch of a scale of a kind
// without a Go type, which does not change the metadata, may have any uid: patched gets that of current, so that it is no precondition.
func (c *call) sameUID(current, patched runtime.Object) error {
	if current == nil || c.recordUpdater != nil {
		return nil
	}
	was, err := meta.Accessor(current)
	if err != nil {
		return nil
	}
	m, err := accessor(patched)
	if err != nil {
		return err
	}
	if c.sub != "" && c.custom() {
		m.SetUID(was.GetUID())
	}
	if uid := m.GetUID(); uid != "" && uid != was.GetUID() {
		return excerpt.Invalid(c.Kind.GroupKind(), c.name, immutableUID(uid))
	}
	return nil
}

func immutableUID(uid types.UID) field.ErrorList {
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), string(uid), "field is immutable")}
}
