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
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding). It is for Go types of which Has is
// true: those with generated methods, as k8s.io/api has them, and those whose fields have protobuf tags, as package
// protobuf says. Only they can read and write it, so that it has no ToJSON and FromJSON: Decode reads it, Encode writes
// it. What is longer than one object, a list or a watch, is put together of the Envelope and Append functions.
//
// It keeps the tables of the types it has seen. All methods may be called concurrently. Make it with Protobuf.
type ProtobufFormat struct{ types protobuf.Compiler }

// Protobuf returns a ProtobufFormat that knows no types yet: one is enough for a whole server.
func Protobuf() *ProtobufFormat { return &ProtobufFormat{} }

// MediaType implements Format.
func (*ProtobufFormat) MediaType() string { return apiruntime.ContentTypeProtobuf }

// Streams implements Format: AppendWatchFrame writes one event.
func (*ProtobufFormat) Streams() bool { return true }

// ToJSON returns an error: a message does not say which fields it has.
func (*ProtobufFormat) ToJSON([]byte, Validation) ([]byte, []error, error) { return nil, nil, errTyped }

// FromJSON returns an error: JSON does not say the numbers of its fields.
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

// Encode returns obj as the body of a response, of the kind gvk whatever obj says. obj is not changed. An object whose
// type has no protobuf form is an error.
func (f *ProtobufFormat) Encode(obj runtime.Object, gvk schema.GroupVersionKind) ([]byte, error) {
	message, err := f.Append(nil, obj) // to be measured it would have to be written as well
	if err != nil {
		return nil, err
	}
	dst := EnvelopeHead(make([]byte, 0, envelopeSize(gvk)+len(message)), gvk, len(message))
	return EnvelopeTail(append(dst, message...)), nil
}

// message returns the message that the type of obj is.
func (f *ProtobufFormat) message(obj runtime.Object) (*protobuf.Message, error) {
	m, err := messageOf(&f.types, obj)
	if err != nil {
		return nil, fmt.Errorf("object %T does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message: %w", obj, err)
	}
	return m, nil
}

// DecodeInto reads a body into obj, whatever kind it says it is of: that is in obj's kind and apiVersion. Unknown and
// duplicate fields are passed over, and nothing gets a default. For protobuf obj's type must have a protobuf form.
func DecodeInto(f Format, body []byte, obj runtime.Object) error {
	return DecodeIntoWithin(f, body, obj, BodyLimits{})
}

// DecodeIntoWithin is DecodeInto of a body that is refused, as DecodeWithin does, when its values would go beyond the limits.
func DecodeIntoWithin(f Format, body []byte, obj runtime.Object, l BodyLimits) error {
	l = l.of(body)
	from, err := readBody(f, body, Ignore, l)
	if err != nil {
		return err
	}
	if err := l.into(obj, from.text, from.message); err != nil {
		return err
	}
	if _, err := from.fill(obj); err != nil {
		return err
	}
	obj.GetObjectKind().SetGroupVersionKind(from.gvk)
	return nil
}
