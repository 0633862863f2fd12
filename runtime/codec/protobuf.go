package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Protobuf returns the format application/vnd.kubernetes.protobuf: an envelope, which names the kind, around a message
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding). It is for kinds of which
// HasProtobuf is true. Only their Go types can read and write it, so that it has no ToJSON and FromJSON: Decode reads
// it, EncodeProtobuf and ProtobufList write it. A watch cannot be written in it.
func Protobuf() Format { return protobufFormat{} }

type protobufFormat struct{}

func (protobufFormat) MediaType() string { return apiruntime.ContentTypeProtobuf }
func (protobufFormat) Streams() bool     { return false }

func (protobufFormat) ToJSON([]byte, Validation) ([]byte, []error, error) { return nil, nil, errTyped }
func (protobufFormat) FromJSON([]byte, bool) ([]byte, error)              { return nil, errTyped }

var errTyped = errors.New("protobuf is read and written by Go types, not as JSON: use Decode and EncodeProtobuf")

// IsProtobuf reports whether f is the format that Protobuf returns.
func IsProtobuf(f Format) bool {
	_, is := f.(protobufFormat)
	return is
}

// protobufMessage is what the Go types of k8s.io/api are: their methods are generated.
type protobufMessage interface {
	Unmarshal(message []byte) error
	Size() int
	MarshalToSizedBuffer(message []byte) (int, error)
}

// HasProtobuf reports whether a struct type has protobuf methods of its own, as those of k8s.io/api have. Methods that
// are promoted from the only embedded type which has them would read and write no more than that: with two or more,
// as TypeMeta and ObjectMeta are, nothing is promoted.
func HasProtobuf(t reflect.Type) bool {
	message := reflect.TypeFor[protobufMessage]()
	if t == nil || t.Kind() != reflect.Struct || !reflect.PointerTo(t).Implements(message) {
		return false
	}
	embedded := 0
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && (f.Type.Implements(message) || reflect.PointerTo(f.Type).Implements(message)) {
			embedded++
		}
	}
	return embedded != 1
}

// messageOf returns obj as a message if the methods are its type's own.
func messageOf(obj any) (protobufMessage, bool) {
	m, ok := obj.(protobufMessage)
	if t := reflect.TypeOf(obj); !ok || t.Kind() != reflect.Pointer || !HasProtobuf(t.Elem()) {
		return nil, false
	}
	return m, true
}

// openEnvelope reads a runtime.Unknown, the message after the mark: what it says of its content, and the content.
func openEnvelope(message []byte) (schema.GroupVersionKind, []byte, error) {
	var e apiruntime.Unknown
	if err := e.Unmarshal(message); err != nil {
		return schema.GroupVersionKind{}, nil, err
	}
	gv, err := schema.ParseGroupVersion(e.APIVersion)
	switch {
	case err != nil:
		return schema.GroupVersionKind{}, nil, err
	case e.ContentEncoding != "":
		return schema.GroupVersionKind{}, nil, fmt.Errorf("its data is encoded as %q, which is not known", e.ContentEncoding)
	case e.ContentType != "" && e.ContentType != apiruntime.ContentTypeProtobuf:
		return schema.GroupVersionKind{}, nil, fmt.Errorf("it holds %q, which is not protobuf", e.ContentType)
	}
	return gv.WithKind(e.Kind), e.Raw, nil
}

// openBody is openEnvelope of a request body, mark included; errors are worded as kube-apiserver does.
func openBody(body []byte) (schema.GroupVersionKind, []byte, error) {
	switch {
	case len(body) == 0:
		return schema.GroupVersionKind{}, nil, errors.New("empty data")
	case len(body) < len(protobufMark) || string(body[:len(protobufMark)]) != protobufMark:
		return schema.GroupVersionKind{}, nil, fmt.Errorf("provided data does not appear to be a protobuf message, expected prefix %v", []byte(protobufMark))
	case len(body) == len(protobufMark):
		return schema.GroupVersionKind{}, nil, errors.New("empty body")
	}
	return openEnvelope(body[len(protobufMark):])
}

// unmarshalMessage reads a message into obj, whose type has a generated Unmarshal method: it recurses, so messages are
// not nested deeper than JSON may be. A method that panics is an error.
func unmarshalMessage(m protobufMessage, message []byte) (err error) {
	defer caught(&err)
	if tooDeep(message) {
		return fmt.Errorf("proto: nested more than %d messages deep", maxDepth)
	}
	if err := make(messageTypes).check(reflect.TypeOf(m).Elem(), message); err != nil {
		return err
	}
	return m.Unmarshal(message)
}

// fillMessage makes obj what a message of a request says. What goes on is what the object's JSON has: a message may
// have strings that are no UTF-8, and raw values that are no JSON, of which the one would be stored as another and
// the other not at all.
func fillMessage(obj runtime.Object, message []byte) (err error) {
	m, ok := obj.(protobufMessage)
	if !ok {
		return fmt.Errorf("%T has no generated Unmarshal method to read protobuf with", obj)
	}
	if err := unmarshalMessage(m, message); err != nil {
		return err
	}
	defer caught(&err) // also a type's MarshalJSON may panic
	text, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	v := reflect.ValueOf(obj).Elem()
	v.SetZero()
	_, err = Unmarshal(text, obj, Ignore)
	return err
}

// DecodeInto reads a body into obj, whatever kind it says it is of: that is in obj's kind and apiVersion. Unknown and
// duplicate fields are passed over, and nothing gets a default. For protobuf obj's type must have the methods of it.
func DecodeInto(f Format, body []byte, obj runtime.Object) error {
	from, err := readBody(f, body, Ignore)
	if err != nil {
		return err
	}
	if _, err := from.fill(obj); err != nil {
		return err
	}
	obj.GetObjectKind().SetGroupVersionKind(from.gvk)
	return nil
}

// maxDepth is how deep messages may be nested: as deep as encoding/json reads values.
const maxDepth = 10000

// tooDeep reports whether a message could be nested more than maxDepth deep. What is a message and what a string only
// its type knows: all that could be a message counts. What the generated methods pass over is passed over, groups and
// numbers of fields that are too large included, of a group all but its ends counting as fields. Each byte is looked at
// as part of one message at most, so this takes time in proportion to the text.
func tooDeep(message []byte) bool {
	if len(message) <= 2*maxDepth { // a level takes two bytes at least
		return false
	}
	var open [][]byte // what is left of the messages around the one at hand
	rest := message
	for {
		if len(rest) == 0 {
			if len(open) == 0 {
				return false
			}
			rest, open = open[len(open)-1], open[:len(open)-1]
			continue
		}
		tag, n := looseVarint(rest)
		if n < 0 {
			rest = nil
			continue
		}
		rest = rest[n:]
		switch kind := protowire.Type(tag & 7); kind {
		case protowire.BytesType:
			size, n := looseVarint(rest)
			if n < 0 || size > uint64(len(rest)-n) {
				rest = nil
				continue
			}
			end := n + int(size)
			if open = append(open, rest[end:]); len(open) > maxDepth {
				return true
			}
			rest = rest[n:end]
		case protowire.StartGroupType, protowire.EndGroupType:
		case protowire.VarintType:
			_, n := looseVarint(rest)
			rest = after(rest, n)
		default:
			rest = after(rest, protowire.ConsumeFieldValue(1, kind, rest))
		}
	}
}

// looseVarint reads a number as the generated methods do: what does not fit into 64 bits of its tenth byte is dropped,
// where protowire refuses it. n is how many bytes it takes, negative when there is none.
func looseVarint(text []byte) (v uint64, n int) {
	for i := range min(len(text), 10) {
		if v |= uint64(text[i]&0x7f) << (7 * i); text[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, -1
}

// after is text without its first n bytes; nothing when n is negative.
func after(text []byte, n int) []byte {
	if n < 0 {
		return nil
	}
	return text[n:]
}

// EncodeProtobuf returns obj as the body of a response, of the kind gvk whatever obj says. obj is not changed. An
// object whose type has no protobuf methods is an error.
func EncodeProtobuf(obj runtime.Object, gvk schema.GroupVersionKind) ([]byte, error) {
	m, ok := messageOf(obj)
	if !ok {
		return nil, fmt.Errorf("object %T does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message", obj)
	}
	text, err := appendMessage(nil, m)
	if err != nil {
		return nil, err
	}
	return seal(gvk, text)
}

func appendMessage(dst []byte, m protobufMessage) ([]byte, error) {
	from, size := len(dst), m.Size()
	dst = append(dst, make([]byte, size)...)
	if _, err := m.MarshalToSizedBuffer(dst[from:]); err != nil {
		return nil, err
	}
	return dst, nil
}

// seal puts a message into its envelope.
func seal(gvk schema.GroupVersionKind, message []byte) ([]byte, error) {
	version, kind := gvk.ToAPIVersionAndKind()
	e := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: version, Kind: kind}, Raw: message}
	out := make([]byte, len(protobufMark)+e.Size())
	copy(out, protobufMark)
	_, err := e.MarshalTo(out[len(protobufMark):])
	return out, err
}

// ProtobufList is a list of objects in protobuf while it is written; make it with NewProtobufList. A list of any kind of
// the Kubernetes API is a message of its metadata, field 1, and its items, field 2.
type ProtobufList struct{ message []byte }

// NewProtobufList begins a list.
func NewProtobufList(meta metav1.ListMeta) (*ProtobufList, error) {
	l := &ProtobufList{}
	return l, l.field(1, &meta)
}

// Add adds an item. An object whose type has no protobuf methods is an error, after which the list must not be used.
func (l *ProtobufList) Add(obj runtime.Object) error {
	m, ok := messageOf(obj)
	if !ok {
		return fmt.Errorf("object %T does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message", obj)
	}
	return l.field(2, m)
}

func (l *ProtobufList) field(number protowire.Number, m protobufMessage) error {
	l.message = protowire.AppendTag(l.message, number, protowire.BytesType)
	l.message = protowire.AppendVarint(l.message, uint64(m.Size()))
	var err error
	l.message, err = appendMessage(l.message, m)
	return err
}

// Encode returns the list as the body of a response, of the list kind gvk.
func (l *ProtobufList) Encode(gvk schema.GroupVersionKind) ([]byte, error) {
	return seal(gvk, l.message)
}
