package codec

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Tags of the messages around an object: the field numbers are those of runtime.Unknown, runtime.RawExtension and
// meta/v1's WatchEvent in https://github.com/kubernetes/apimachinery/tree/master/pkg (generated.proto).
const (
	firstBytes  = 1<<3 | byte(protowire.BytesType)
	secondBytes = 2<<3 | byte(protowire.BytesType)
	thirdBytes  = 3<<3 | byte(protowire.BytesType)
	fourthBytes = 4<<3 | byte(protowire.BytesType)
)

// EnvelopeHead appends what comes before a message of so many bytes in a body of the kind gvk: the mark, the kind, and
// how long the message is. The message follows, and then EnvelopeTail.
func EnvelopeHead(dst []byte, gvk schema.GroupVersionKind, message int) []byte {
	version, kind := gvk.ToAPIVersionAndKind()
	dst = append(dst, protobufMark...)
	dst = protowire.AppendVarint(append(dst, firstBytes), uint64(bytesSize(len(version))+bytesSize(len(kind))))
	dst = protowire.AppendString(append(dst, firstBytes), version)
	dst = protowire.AppendString(append(dst, secondBytes), kind)
	return protowire.AppendVarint(append(dst, secondBytes), uint64(message))
}

// EnvelopeTail appends what comes after the message: that it is not encoded otherwise, and nothing of its type, as
// kube-apiserver says it.
func EnvelopeTail(dst []byte) []byte { return append(dst, thirdBytes, 0, fourthBytes, 0) }

// AppendWatchFrame appends an event of a watch, such as "ADDED", of an object in its envelope: the length of what
// follows in four bytes, big-endian, and a WatchEvent, which is in no envelope itself.
func AppendWatchFrame(dst []byte, kind string, object []byte) []byte {
	raw := bytesSize(len(object))
	dst = binary.BigEndian.AppendUint32(dst, uint32(bytesSize(len(kind))+bytesSize(raw)))
	dst = protowire.AppendString(append(dst, firstBytes), kind)
	dst = protowire.AppendVarint(append(dst, secondBytes), uint64(raw))
	return protowire.AppendBytes(append(dst, firstBytes), object)
}

// bytesSize is the size of a field with so many bytes, whose tag is one byte.
func bytesSize(n int) int { return 1 + protowire.SizeBytes(n) }

// envelopeSize is at least what the envelope of the kind adds to a message.
func envelopeSize(gvk schema.GroupVersionKind) int {
	return 40 + len(gvk.Group) + len(gvk.Version) + len(gvk.Kind)
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
