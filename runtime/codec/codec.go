package codec

import (
	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Validation selects how unknown and duplicate fields in a body are treated: it is the fieldValidation option of the Kubernetes
// API. The zero Validation is Warn, which is also the API's default.
type Validation int

// The three ways to treat unknown and duplicate fields.
const (
	Warn   Validation = iota // report them in Decoded.Problems
	Strict                   // report them too; the caller must refuse the body
	Ignore                   // do not look for them
)

// Decoded is a decoded body.
type Decoded struct {
	// Object has the Go type registered for GVK, with defaults; it belongs to the caller.
	Object runtime.Object
	// GVK is the kind and apiVersion in the body; the expected ones replace those that the body lacks.
	GVK schema.GroupVersionKind
	// Problems are the unknown and duplicate fields, with the texts of kube-apiserver (`unknown field "spec.foo"`, `duplicate
	// field "spec.a"`). It is always empty with Ignore.
	Problems []error
}

// Format is one wire format of objects: JSON, YAML, CBOR or protobuf. Only MediaType and Streams work for protobuf.
type Format interface {
	// MediaType returns the media type without parameters, such as "application/json".
	MediaType() string
	// ToJSON converts body from this format to JSON. problems are the duplicate fields that the conversion would hide, unless v
	// is Ignore. The result may share memory with body.
	ToJSON(body []byte, v Validation) (json []byte, problems []error, err error)
	// FromJSON converts the JSON text of one value to this format, as a response body. The body ends with a newline, except
	// indented JSON and CBOR. pretty selects an indented form if the format has one. json is not changed.
	FromJSON(json []byte, pretty bool) ([]byte, error)
	// Streams reports whether a watch can be written in this format.
	Streams() bool
}
