// Package codec turns objects into bytes and bytes into objects: JSON, YAML and CBOR with strict, warning and lenient
// decoding, protobuf for Go types with generated methods or tags, content negotiation, and [Document], the form in which stored objects travel to their readers
// without being decoded.
//
// # Canonical bytes
//
// The canonical form of a Go-typed object is its JSON in struct order, kind and apiVersion first, characters
// HTML-escaped as encoding/json does, metadata.resourceVersion absent:
//
//	{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a",...},"spec":{...}}
//
// An untyped (unstructured) object has its keys in alphabetical order instead, as encoding/json writes a map:
//
//	{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{...,"name":"a",...},"spec":{...}}
//
// Of its numbers those that are whole are written without a point or an exponent, up to 21 digits, so that 1.0 and 1e0
// become 1; whole numbers beyond 64 bits are taken as floating-point numbers, as of custom resources in kube-apiserver.
//
// # Values of kube-apiserver
//
// A [Typed] also reads what kube-apiserver has stored in protobuf, for Go types with a protobuf form, and says so of values
// that it cannot read because they are encrypted
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding). It reads what kube-apiserver has stored
// in CBOR, which are custom resources, with or without a Go type. It writes JSON.
//
// # Protobuf
//
// A [ProtobufFormat] reads and writes Go types with generated methods, such as those of k8s.io/api, and those whose fields
// have protobuf tags, without generated code: package protobuf has the rules. A body is an envelope around the object's
// message. That of a list is around the list's, which can be written piece by piece between EnvelopeHead and EnvelopeTail
// when it is known how long it is. Each event of a watch is an AppendWatchFrame around a whole body.
//
// # Documents
//
// A Document keeps canonical bytes and where in them the resourceVersion goes, so that one immutable slice serves
// storage, single objects, list items and watch events.
package codec
