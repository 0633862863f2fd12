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

// EnvelopeHead appends the part of a body of the kind gvk that precedes a message of the given length: the four bytes "k8s\x00"
// with which every body begins, the kind, and the length. The message must follow, and then EnvelopeTail.
func EnvelopeHead(dst []byte, gvk schema.GroupVersionKind, message int) []byte {
	version, kind := gvk.ToAPIVersionAndKind()
	dst = append(dst, protobufMark...)
	dst = protowire.AppendVarint(append(dst, firstBytes), uint64(bytesSize(len(version))+bytesSize(len(kind))))
	dst = protowire.AppendString(append(dst, firstBytes), version)
	dst = protowire.AppendString(append(dst, secondBytes), kind)
	return protowire.AppendVarint(append(dst, secondBytes), uint64(message))
}

// EnvelopeTail appends the part of a body that follows the message: an empty content encoding and an empty content type, as
// kube-apiserver writes them.
func EnvelopeTail(dst []byte) []byte { return append(dst, thirdBytes, 0, fourthBytes, 0) }

// AppendWatchFrame appends an event of a watch. kind is the type of the event, such as "ADDED", and object is an object in its
// envelope. A frame is the length of the rest in four bytes, big-endian, and a WatchEvent message, which has no envelope itself.
func AppendWatchFrame(dst []byte, kind string, object []byte) []byte {
	raw := bytesSize(len(object))
	dst = binary.BigEndian.AppendUint32(dst, uint32(bytesSize(len(kind))+bytesSize(raw)))
	dst = protowire.AppendString(append(dst, firstBytes), kind)
	dst = protowire.AppendVarint(append(dst, secondBytes), uint64(raw))
	return protowire.AppendBytes(append(dst, firstBytes), object)
}

// bytesSize returns the encoded size of a field of n bytes whose tag is one byte.
func bytesSize(n int) int { return 1 + protowire.SizeBytes(n) }

// envelopeSize returns an upper bound of the size that the envelope of the kind adds to a message.
func envelopeSize(gvk schema.GroupVersionKind) int {
	return 40 + len(gvk.Group) + len(gvk.Version) + len(gvk.Kind)
}

// openEnvelope decodes a runtime.Unknown, which is the message after the mark. It returns the kind and the content.
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

// openBody is openEnvelope for a request body, mark included. Its errors have the texts of kube-apiserver.
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
