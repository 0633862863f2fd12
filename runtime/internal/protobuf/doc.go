// Package protobuf encodes and decodes Go types as protobuf messages by the tags of their fields, without generated code:
//
//	type WidgetSpec struct {
//		Size   int32             `json:"size" protobuf:"varint,1,opt,name=size"`
//		Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,3,rep,name=labels"`
//		Until  *metav1.Time      `json:"until,omitempty" protobuf:"bytes,4,opt,name=until"`
//	}
//
// A [Compiler] makes the [Message] of a type once, which encodes and decodes its values.
//
// The tags are those of k8s.io/api, and the encoding is that of the code that go-to-protobuf generates for them
// (https://pkg.go.dev/k8s.io/code-generator/cmd/go-to-protobuf). A tag consists of the encoding of the value
// (https://protobuf.dev/programming-guides/encoding/) and the number of the field, which must never change, separated by a comma.
// Of the rest of a tag, such as opt, rep and the name, only packed has an effect.
//
//	varint              bool, int..., uint...
//	zigzag32, zigzag64  int8 to int32, any int
//	fixed32, fixed64    numbers of up to 32 bits, any int or uint, float64
//	bytes               string, []byte, structs, and slices and maps of types with this encoding
//
// If the encoding in a tag is not possible for the Go type, the usual encoding of the type is used: k8s.io/api has such tags.
//
// Every field in JSON must have a tag, except an embedded TypeMeta, which is never part of a message. `protobuf:"-"` leaves a
// field out of the message. A type has no protobuf form if one of its fields has no tag, or is an interface, an array, or a
// pointer to a slice, a map or a pointer.
//
// Values that are not pointers are always written. Nil pointers, empty slices and empty maps are never written, and decoded as
// nil. A slice or a map that is an item of another one, such as the values of a map[string][]string, is a message of its own with
// the items as field 1. A type with the methods that go-to-protobuf generates, such as metav1.ObjectMeta, metav1.Time or
// resource.Quantity, is always encoded and decoded by these methods.
//
// Messages may come from an attacker. Messages nested more than 10000 deep, truncated messages, and map entries that are shorter
// than their stated length are errors; unknown fields are ignored. This also holds for types with generated methods, which have
// no such limits themselves.
package protobuf
