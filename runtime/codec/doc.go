// Package codec encodes and decodes API objects in JSON, YAML, CBOR and protobuf, and negotiates the format of requests and
// responses.
//
// A program needs few of its functions: [Encode] and [Decode] for single objects, [Unmarshal] for JSON with problems as
// kube-apiserver words them, and [Typed] for an own storage. The others serve the handlers and the storage of this library.
//
// Decoding is strict, lenient, or reports warnings: see [Validation]. Protobuf is for Go types with generated methods or protobuf
// tags: see [ProtobufFormat]. A [Typed] encodes the objects of one kind for storage.
//
// # Canonical form
//
// A [Document] is one object in canonical form. It keeps the bytes and the place for metadata.resourceVersion, so that storage,
// single objects, list items and watch events share one immutable slice, and objects are not decoded for readers.
//
// The canonical form of an object with a Go type is its JSON in struct order, with kind and apiVersion first, characters
// HTML-escaped as by encoding/json, and without metadata.resourceVersion:
//
//	{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a",...},"spec":{...}}
//
// An untyped (unstructured) object has its keys in alphabetical order instead, as encoding/json writes a map:
//
//	{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{...,"name":"a",...},"spec":{...}}
//
// In an untyped object, numbers that are whole are written without a point or an exponent, up to 21 digits: 1.0 and 1e0 become 1.
// Whole numbers that do not fit into 64 bits become floating-point numbers, as in custom resources of kube-apiserver.
package codec
