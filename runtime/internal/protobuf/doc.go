// Package protobuf writes and reads Go types as protobuf messages by the tags of their fields, without generated code:
//
//	type WidgetSpec struct {
//		Size   int32             `json:"size" protobuf:"varint,1,opt,name=size"`
//		Names  []string          `json:"names,omitempty" protobuf:"bytes,2,rep,name=names"`
//		Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,3,rep,name=labels"`
//		Until  *metav1.Time      `json:"until,omitempty" protobuf:"bytes,4,opt,name=until"`
//	}
//
// A [Compiler] makes a table of a type once, a [Message], which writes and reads its values.
//
// # Tags
//
// They are those of k8s.io/api, and the bytes those of the code that go-to-protobuf generates for them
// (https://pkg.go.dev/k8s.io/code-generator/cmd/go-to-protobuf). A tag has, with commas between, how the value is written
// (https://protobuf.dev/programming-guides/encoding/) and the number of the field, which never changes again. What follows,
// such as opt, rep and the name, is for others, but for packed.
//
//	varint              bool, int..., uint...
//	zigzag32, zigzag64  int8 to int32, any int
//	fixed32, fixed64    numbers of up to 32 bits, any int or uint, float64
//	bytes               string, []byte, structs, and slices and maps of what is written as bytes
//
// Where the Go type cannot be written as its tag says, it is written as is usual for it: k8s.io/api has such tags.
//
// Every field that JSON shows has a tag, but for an embedded TypeMeta, which is never in a message; `protobuf:"-"` keeps
// a field out of it. A type with a field that has none has no protobuf form, nor has one with an interface, an array, or
// a pointer to a slice, a map or a pointer.
//
// Values that are no pointers are always written, and nil pointers, empty slices and empty maps never: those are read
// as nil. A slice or a map that is an item of another, such as the values of a map[string][]string, is a message of its own
// with the items as field 1.
//
// # Generated methods
//
// A type with the methods that go-to-protobuf generates, such as metav1.ObjectMeta, metav1.Time or resource.Quantity, is
// written and read by them, wherever it is.
//
// # Hostile messages
//
// What is read may be anything. Messages nested more than 10000 deep, cut ones, and entries of maps that say they are
// longer than they are, are errors; unknown fields are passed over. This holds for what generated methods read, too, which
// know no such limits themselves.
package protobuf
