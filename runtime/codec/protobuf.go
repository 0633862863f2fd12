package codec

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/internal/protobuf"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ProtobufFormat is the format application/vnd.kubernetes.protobuf: an envelope, which names the kind, around a message
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding). It is for Go types for which Has returns
// true: those with generated methods, such as the types of k8s.io/api, and those whose fields have protobuf tags (see package
// runtime/internal/protobuf). Only such a type can be decoded from and encoded in protobuf, so ToJSON and FromJSON return errors:
// use [Decode] and Encode.
//
// A list can be written piece by piece, if the size of its message is known, between [EnvelopeHead] and [EnvelopeTail]. Each
// event of a watch is written by [AppendWatchFrame] with a whole body.
//
// A ProtobufFormat caches tables for the types that it has encoded or decoded. All methods may be called concurrently. Make it
// with [Protobuf].
type ProtobufFormat struct{ types protobuf.Compiler }

// Protobuf returns a new ProtobufFormat. One is enough for a whole server.
func Protobuf() *ProtobufFormat { return &ProtobufFormat{} }

// MediaType implements Format.
func (*ProtobufFormat) MediaType() string { return apiruntime.ContentTypeProtobuf }

// Streams implements Format: AppendWatchFrame writes one event.
func (*ProtobufFormat) Streams() bool { return true }

// ToJSON returns an error: a protobuf message does not contain the names of its fields.
func (*ProtobufFormat) ToJSON([]byte, Validation) ([]byte, []error, error) { return nil, nil, errTyped }

// FromJSON returns an error: JSON does not contain the protobuf numbers of its fields.
func (*ProtobufFormat) FromJSON([]byte, bool) ([]byte, error) { return nil, errTyped }

var errTyped = errors.New("protobuf is read and written by Go types, not as JSON: use Decode and Encode")

// IsProtobuf reports whether f is a ProtobufFormat.
func IsProtobuf(f Format) bool {
	_, is := f.(*ProtobufFormat)
	return is
}

// Has reports whether a struct type can be read and written in protobuf.
func (f *ProtobufFormat) Has(t reflect.Type) bool {
	_, err := f.types.Of(t)
	return err == nil
}

// Append appends the message of obj to dst, without an envelope.
func (f *ProtobufFormat) Append(dst []byte, obj runtime.Object) ([]byte, error) {
	m, err := f.message(obj)
	if err != nil {
		return dst, err
	}
	return m.Append(dst, obj)
}

// Encode returns obj as the body of a response of the kind gvk; the kind that is set in obj is ignored. obj is not changed.
// Encode returns an error if the type of obj has no protobuf form.
func (f *ProtobufFormat) Encode(obj runtime.Object, gvk schema.GroupVersionKind) ([]byte, error) {
	message, err := f.Append(nil, obj) // measuring the message first would mean to write it twice
	if err != nil {
		return nil, err
	}
	dst := EnvelopeHead(make([]byte, 0, envelopeSize(gvk)+len(message)), gvk, len(message))
	return EnvelopeTail(append(dst, message...)), nil
}

// message returns the message description for the type of obj.
func (f *ProtobufFormat) message(obj runtime.Object) (*protobuf.Message, error) {
	m, err := messageOf(&f.types, obj)
	if err != nil {
		return nil, fmt.Errorf("object %T does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message: %w", obj, err)
	}
	return m, nil
}

// DecodeInto decodes a body of any kind into obj; kind and apiVersion of obj are then those of the body. Unknown and duplicate
// fields are ignored, and no defaults are set. For protobuf, the type of obj must have a protobuf form.
func DecodeInto(f Format, body []byte, obj runtime.Object) error {
	return DecodeIntoWithin(f, body, obj, BodyLimits{})
}

// DecodeIntoWithin is DecodeInto with limits. Like DecodeWithin it returns a *LimitError if the values would exceed them. If a value
// does not fit obj, obj has the kind of the body nevertheless.
func DecodeIntoWithin(f Format, body []byte, obj runtime.Object, l BodyLimits) error {
	l = l.of(body)
	from, err := readBody(f, body, Ignore, l)
	if err != nil {
		return err
	}
	if err := l.into(obj, from.text, from.message); err != nil {
		return err
	}
	_, err = from.fill(obj)
	obj.GetObjectKind().SetGroupVersionKind(from.gvk)
	return err
}
