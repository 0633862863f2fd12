package handlers

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/request"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// shape says what a verb answers with, as far as it matters to the forms that can be asked for.
type shape int

const (
	oneObject shape = iota
	manyObjects
	eventStream
)

// form is how an answer is to be written: a format, and the kind's own form or another.
type form struct {
	codec.Accept
	include metav1.IncludeObjectPolicy // of a Table
}

func (f form) isTable() bool    { return f.As.Kind == "Table" }
func (f form) isPartial() bool  { return strings.HasPrefix(f.As.Kind, "PartialObjectMetadata") }
func (f form) isProtobuf() bool { return codec.IsProtobuf(f.Format) }

// negotiate finds the form of the answer, before anything is done that a refusal would come too late for.
func (c *call) negotiate(s shape) (form, error) {
	limits := codec.Limits{As: allowed, Own: c.own, Stream: s == eventStream}
	asked := ""
	if accepts := c.r.Header["Accept"]; len(accepts) > 0 {
		asked = accepts[0]
	}
	accept, ok := c.usual[usual{asked, limits.Stream}]
	if !ok {
		accept, ok = codec.NegotiateResponse(asked, c.Resource.formats, limits)
	}
	if !ok {
		limits.Stream = false
		_, named := codec.NegotiateResponse(asked, c.Resource.formats, limits)
		formats := c.formats
		if c.untyped() { // kube-apiserver names protobuf for custom resources, which have it for their metadata alone
			formats = c.Resource.formats
		}
		return form{}, codec.NotAcceptable(formats, named) // of what was named, those that are streamed
	}
	f := form{Accept: accept}
	f.Pretty = request.Pretty(c.r, f.Pretty)
	switch {
	case f.As.Kind == "PartialObjectMetadata" && s == manyObjects:
		return f, notAcceptable("you requested PartialObjectMetadata, but the requested object is a list (*%s.%sList)", c.kind.Version, c.kind.Kind)
	case f.As.Kind == "PartialObjectMetadataList" && s != manyObjects:
		return f, notAcceptable("you requested PartialObjectMetadataList, but the requested object is not a list (*%s.%s)", c.kind.Version, c.kind.Kind)
	case f.isTable():
		var err error
		f.include, err = tableOptions(c.r.URL.Query())
		return f, err
	}
	return f, nil
}

// usual is an Accept header that many clients send, of a request for a stream or for another answer.
type usual struct {
	accept string
	stream bool
}

// negotiateUsual finds the formats for the headers that clients mostly send, so that it need not be done for each request.
func (e *endpoint) negotiateUsual() map[usual]codec.Accept {
	list := []string{"", "*/*", "application/json, */*"} // none, curl, client-go for objects without a type
	for _, f := range e.Resource.formats {
		list = append(list, f.MediaType(), f.MediaType()+",application/json") // client-go for objects of a type
	}
	out := map[usual]codec.Accept{}
	for _, accept := range list {
		for _, stream := range []bool{false, true} {
			if a, ok := codec.NegotiateResponse(accept, e.Resource.formats, codec.Limits{As: allowed, Own: e.own, Stream: stream}); ok {
				out[usual{accept, stream}] = a
			}
		}
	}
	return out
}

// own reports whether the kind's own form can be asked for in a media type. Metadata alone can in any.
func (e *endpoint) own(mediaType string) bool {
	return e.proto || e.Resource.proto == nil || mediaType != e.Resource.proto.MediaType()
}

// streamType is the Content-Type of a watch.
func (f form) streamType() string {
	switch {
	case f.isProtobuf():
		return f.Format.MediaType() + ";stream=watch"
	case codec.IsCBOR(f.Format): // https://www.rfc-editor.org/rfc/rfc8742
		return "application/cbor-seq"
	}
	return f.Format.MediaType()
}

// allowed tells which forms besides the kind's own can be asked for. Tables exist only as text.
func allowed(gvk schema.GroupVersionKind, mediaType string) bool {
	if gv := gvk.GroupVersion(); gv != metav1.SchemeGroupVersion && gv != metav1beta1.SchemeGroupVersion {
		return false
	}
	switch gvk.Kind {
	case "Table":
		return mediaType == "application/json" || mediaType == "application/yaml"
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		return true
	}
	return false
}

func notAcceptable(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: fmt.Sprintf(format, args...),
	}}
}

// MediaTypes are those in which an object can be answered.
func (r *Resource) MediaTypes() []string { return codec.MediaTypes(r.main.formats) }

// StreamTypes are those in which a watch can be answered.
func (r *Resource) StreamTypes() []string { return codec.StreamTypes(r.main.formats) }

// tableOptions checks what a Table's rows are to contain.
func tableOptions(q url.Values) (metav1.IncludeObjectPolicy, error) {
	o := &metav1.TableOptions{}
	if err := metav1.Convert_url_Values_To_v1_TableOptions(&q, o, nil); err != nil {
		return "", apierrors.NewBadRequest(err.Error())
	}
	if errs := metav1validation.ValidateTableOptions(o); len(errs) > 0 {
		return "", apierrors.NewBadRequest(fmt.Sprintf("Unable to convert to Table as requested: %v", errs[0].Error()))
	}
	if o.IncludeObject == "" {
		return metav1.IncludeMetadata, nil
	}
	return o.IncludeObject, nil
}
