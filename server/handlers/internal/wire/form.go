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

// Answer is the kind of an answer, as far as the available forms depend on it.
type Answer int

// The kinds of answers.
const (
	OneObject   Answer = iota // one object
	ManyObjects               // a list
	Events                    // a watch
)

// Forms are the forms in which the objects of an endpoint can be answered.
type Forms struct {
	objects *Objects
	offered []codec.Format // the default first
	own     []codec.Format // the formats of offered that can encode whole objects; the others can encode metadata only
	usual   map[usual]codec.Accept
}

// usual is an Accept header that many clients send, in a request for a watch (stream) or for another answer.
type usual struct {
	accept string
	stream bool
}

// NewForms returns the Forms of objects in formats, the default first. It returns an error if a format is not one of package
// codec.
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

// Own returns the formats that can encode whole objects. Bodies are accepted in the same formats. Protobuf is one of them only if
// the Go type of the kind supports it. The slice must not be changed.
func (f *Forms) Own() []codec.Format { return f.own }

// HasCBOR reports whether CBOR is one of the formats.
func (f *Forms) HasCBOR() bool { return slices.ContainsFunc(f.offered, codec.IsCBOR) }

// encodingOf returns the encoding of a format, or nil if there is none.
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

// Negotiate returns the form of the answer to r. The error is for the client.
func (f *Forms) Negotiate(r *http.Request, answer Answer) (Form, error) {
	asked := r.Header.Get("Accept")
	accept, ok := f.accept(asked, answer == Events)
	if !ok {
		_, named := f.accept(asked, false)
		return Form{}, f.notAcceptable(named) // for a watch, only those formats that can be streamed are named
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

// CheckNames returns an error if the Accept header of r names none of the media types of the answer: see codec.Names. streams says that
// the answer may be a watch.
func (f *Forms) CheckNames(r *http.Request, streams bool) error {
	asked := r.Header.Get("Accept")
	if _, ok := f.usual[usual{asked, false}]; ok {
		return nil
	}
	types := codec.MediaTypes(f.offered)
	if streams {
		types = append(types, codec.StreamTypes(f.offered)...)
	}
	if codec.Names(asked, types) {
		return nil
	}
	return codec.Unnamed(types)
}

// Check returns an error if the Accept header of r fits no form of any answer. The options of a list or watch are read only after
// that.
func (f *Forms) Check(r *http.Request) error {
	if _, ok := f.accept(r.Header.Get("Accept"), false); !ok {
		return f.notAcceptable(false)
	}
	return nil
}

// notAcceptable returns the error that names the formats that there are, or those that can be streamed.
func (f *Forms) notAcceptable(stream bool) error {
	if f.objects.Untyped() { // kube-apiserver names protobuf for custom resources, too, because it can encode their metadata
		return codec.NotAcceptable(f.offered, stream)
	}
	return codec.NotAcceptable(f.own, stream)
}

// accept returns the format for an Accept header; ok is false if there is none.
func (f *Forms) accept(asked string, stream bool) (accept codec.Accept, ok bool) {
	if accept, ok = f.usual[usual{asked, stream}]; ok {
		return accept, true
	}
	return codec.NegotiateResponse(asked, f.offered, f.limits(stream))
}

func (f *Forms) limits(stream bool) codec.Limits {
	return codec.Limits{As: f.hasView, Own: f.hasOwn, Stream: stream}
}

// negotiateUsual negotiates the headers of most clients in advance, so that it need not be done for each request.
func (f *Forms) negotiateUsual() map[usual]codec.Accept {
	list := []string{"", "*/*", "application/json, */*"} // no header, curl, client-go for objects without a Go type
	for _, format := range f.offered {
		list = append(list, format.MediaType(), format.MediaType()+",application/json") // client-go for objects of a Go type
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

// hasOwn reports whether a media type can encode whole objects. Every media type can encode metadata.
func (f *Forms) hasOwn(mediaType string) bool {
	return slices.ContainsFunc(f.own, func(o codec.Format) bool { return o.MediaType() == mediaType })
}

// hasView reports whether a view is available in a media type. Tables are available as text only.
func (f *Forms) hasView(gvk schema.GroupVersionKind, mediaType string) bool {
	if gv := gvk.GroupVersion(); gv != metav1.SchemeGroupVersion && gv != metav1beta1.SchemeGroupVersion {
		return false
	}
	switch gvk.Kind {
	case tableKind:
		return !f.objects.NoTable && (mediaType == compact{}.mediaType() || mediaType == yaml{}.mediaType())
	case partialKind, partialListKind:
		return true
	}
	return false
}

// tableOptions returns which part of the object the rows of a table include.
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
