package wire

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/request"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Answer says what a verb answers with, as far as it matters to the forms that can be asked for.
type Answer int

// Answers.
const (
	OneObject Answer = iota
	ManyObjects
	Events
)

// Forms are the forms in which the objects of an endpoint are answered.
type Forms struct {
	objects *Objects
	offered []codec.Format // the default first
	own     []codec.Format // those of offered that have the objects themselves; the others have their metadata alone
	usual   map[usual]codec.Accept
}

// usual is an Accept header that many clients send, of a request for a stream or for another answer.
type usual struct {
	accept string
	stream bool
}

// NewForms returns the Forms of objects in formats, the default first. A format that is none of those of package codec is an
// error.
func NewForms(o *Objects, formats []codec.Format) (*Forms, error) {
	f := &Forms{objects: o, offered: formats}
	for _, format := range formats {
		if encodingOf(format, false) == nil {
			return nil, fmt.Errorf("objects cannot be written as %s; want some of JSON, YAML, CBOR and protobuf", format.MediaType())
		}
		if p, is := format.(*codec.ProtobufFormat); !is || o.Known != nil && p.Has(o.Known.Type) {
			f.own = append(f.own, format)
		}
	}
	f.usual = f.negotiateUsual()
	return f, nil
}

// Own are the formats of the objects themselves, which bodies are in, too: protobuf is one of them if the Go type has it. The
// slice must not be changed.
func (f *Forms) Own() []codec.Format { return f.own }

// HasCBOR reports whether CBOR is one of the formats.
func (f *Forms) HasCBOR() bool { return slices.ContainsFunc(f.offered, codec.IsCBOR) }

// encodingOf is the encoding of a format; nil if there is none.
func encodingOf(format codec.Format, pretty bool) encoding {
	if p, is := format.(*codec.ProtobufFormat); is {
		return protobuf{p}
	}
	switch mediaType := format.MediaType(); {
	case codec.IsCBOR(format):
		return cbor{}
	case mediaType == yaml{}.mediaType():
		return yaml{}
	case mediaType == compact{}.mediaType() && pretty:
		return indented{}
	case mediaType == compact{}.mediaType():
		return compact{}
	}
	return nil
}

// Negotiate finds the form of the answer to r.
func (f *Forms) Negotiate(r *http.Request, answer Answer) (Form, error) {
	asked := ""
	if accepts := r.Header["Accept"]; len(accepts) > 0 {
		asked = accepts[0]
	}
	accept, ok := f.accept(asked, answer == Events)
	if !ok {
		_, named := codec.NegotiateResponse(asked, f.offered, f.limits(false))
		formats := f.own
		if f.objects.Untyped() { // kube-apiserver names protobuf for custom resources, which have it for their metadata alone
			formats = f.offered
		}
		return Form{}, codec.NotAcceptable(formats, named) // of what was named, those that are streamed
	}
	out := Form{encoding: encodingOf(accept.Format, request.Pretty(r, accept.Pretty)), as: accept.As}
	switch {
	case out.as.Kind == partialKind && answer == ManyObjects:
		return out, notAcceptable(fmt.Sprintf("you requested PartialObjectMetadata, but the requested object is a list (*%s.%sList)", f.objects.Kind.Version, f.objects.Kind.Kind))
	case out.as.Kind == partialListKind && answer != ManyObjects:
		return out, notAcceptable(fmt.Sprintf("you requested PartialObjectMetadataList, but the requested object is not a list (*%s.%s)", f.objects.Kind.Version, f.objects.Kind.Kind))
	case out.as.Kind == tableKind:
		var err error
		out.include, err = tableOptions(r.URL.Query())
		return out, err
	}
	return out, nil
}

// accept finds the format for an Accept header; ok is false if there is none.
func (f *Forms) accept(asked string, stream bool) (accept codec.Accept, ok bool) {
	if accept, ok = f.usual[usual{asked, stream}]; ok {
		return accept, true
	}
	return codec.NegotiateResponse(asked, f.offered, f.limits(stream))
}

func (f *Forms) limits(stream bool) codec.Limits {
	return codec.Limits{As: hasView, Own: f.hasOwn, Stream: stream}
}

// negotiateUsual finds the formats for the headers that clients mostly send, so that it need not be done for each request.
func (f *Forms) negotiateUsual() map[usual]codec.Accept {
	list := []string{"", "*/*", "application/json, */*"} // none, curl, client-go for objects without a type
	for _, format := range f.offered {
		list = append(list, format.MediaType(), format.MediaType()+",application/json") // client-go for objects of a type
	}
	out := map[usual]codec.Accept{}
	for _, asked := range list {
		for _, stream := range []bool{false, true} {
			if a, ok := codec.NegotiateResponse(asked, f.offered, f.limits(stream)); ok {
				out[usual{asked, stream}] = a
			}
		}
	}
	return out
}

// hasOwn reports whether the objects themselves can be asked for in a media type. Metadata alone can in any.
func (f *Forms) hasOwn(mediaType string) bool {
	return slices.ContainsFunc(f.own, func(o codec.Format) bool { return o.MediaType() == mediaType })
}

// hasView reports whether a view can be asked for in a media type. Tables exist only as text.
func hasView(gvk schema.GroupVersionKind, mediaType string) bool {
	if gv := gvk.GroupVersion(); gv != metav1.SchemeGroupVersion && gv != metav1beta1.SchemeGroupVersion {
		return false
	}
	switch gvk.Kind {
	case tableKind:
		return mediaType == compact{}.mediaType() || mediaType == yaml{}.mediaType()
	case partialKind, partialListKind:
		return true
	}
	return false
}

// tableOptions checks what a table's rows are to contain.
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
