package handlers

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bodyFormat is the format the Content-Type names.
func (c *call) bodyFormat() (codec.Format, error) {
	f, ok := codec.NegotiateBody(c.r.Header.Get("Content-Type"), c.forms.Own())
	if !ok {
		return nil, codec.UnsupportedMediaType(codec.MediaTypes(c.forms.Own()))
	}
	return f, nil
}

// deleteFormat is bodyFormat for the options of a delete, whose type has protobuf whatever that of the kind has.
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

// decode makes the object of a body, in the URL's version, and deals with its unknown and duplicate fields.
func (c *call) decode(f codec.Format, body []byte, v codec.Validation) (runtime.Object, error) {
	if c.Untyped() {
		d, err := c.decodeUntyped(f, body, v)
		if err == nil {
			c.warnAll(d.Problems)
		}
		return d.Object, err
	}
	d, err := codec.DecodeWithin(c.scheme, f, body, c.Kind, v, c.limits())
	if gv := d.GVK.GroupVersion(); d.GVK.Kind == c.Kind.Kind && !gv.Empty() && gv != c.Kind.GroupVersion() {
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
	return d.Object, nil
}

func isBeyondLimit(err error) bool {
	var over *codec.LimitError
	return errors.As(err, &over)
}

// beyondLimit is the error of a body that is beyond a limit, or for which there is no room; nil: err says something else.
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

// decodeError words why a body is no object of the kind.
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

// summary shows the beginning of a body that could not be understood.
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

// warnAll warns of each problem. The duplicate keys of a YAML body are one error of several lines below a heading, and
// a warning each.
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

// matchNamespace makes the namespace of a body the request's, or refuses it when it is another.
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

// matchName refuses an object whose name is not the one of the URL.
func (c *call) matchName(obj metav1.Object) error {
	switch got := obj.GetName(); {
	case got == "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", c.name))
	case got != c.name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", got, c.name))
	}
	return nil
}

// accessor is meta.Accessor for objects that decode made; a kind in a scheme always has metadata.
func accessor(obj runtime.Object) (metav1.Object, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return m, nil
}

// decodeUntyped makes the object of a body for a kind without a Go type, which must say itself what it is.
func (c *call) decodeUntyped(f codec.Format, body []byte, v codec.Validation) (codec.Decoded, error) {
	d, err := codec.DecodeWithin(c.scheme, f, body, c.Kind, v, c.limits())
	switch {
	case err != nil:
		return d, c.decodeError(err, d.GVK, body)
	case len(d.Problems) > 0 && v == codec.Strict:
		return d, c.decodeError(codec.StrictError(d.Problems), d.GVK, body)
	case d.GVK.GroupVersion() != c.Kind.GroupVersion():
		return d, wrongVersion(d.GVK.GroupVersion(), c.Kind.GroupVersion())
	}
	return d, c.sameKind(d)
}

// sameKind refuses an object that says it is of another kind or version.
func (e *endpoint) sameKind(d codec.Decoded) error {
	if d.GVK == e.Kind {
		return nil
	}
	var errs field.ErrorList
	if got, want := d.GVK.GroupVersion().String(), e.Version; got != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), got, fmt.Sprintf("must be %s", want)))
	}
	if got, want := d.GVK.Kind, e.Kind.Kind; got != want {
		errs = append(errs, field.Invalid(field.NewPath("kind"), got, fmt.Sprintf("must be %s", want)))
	}
	name := ""
	if m, err := meta.Accessor(d.Object); err == nil {
		name = m.GetName()
	}
	return excerpt.Invalid(d.GVK.GroupKind(), name, errs)
}

// sameUID refuses a patch that gives the object another uid.
func (c *call) sameUID(current, patched runtime.Object) error {
	if current == nil {
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
	if uid := m.GetUID(); uid != "" && uid != was.GetUID() {
		return excerpt.Invalid(c.Kind.GroupKind(), c.name, immutableUID(uid))
	}
	return nil
}

func immutableUID(uid types.UID) field.ErrorList {
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), string(uid), "field is immutable")}
}
