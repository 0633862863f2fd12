package codec

import (
	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Validation says what becomes of unknown and duplicate fields in a body: the fieldValidation option of the
// Kubernetes API. The zero Validation is Warn, which is also the API's default.
type Validation int

// The three ways to treat unknown and duplicate fields.
const (
	Warn   Validation = iota // report them beside the decoded object
	Strict                   // report them as well; the caller refuses the body
	Ignore                   // do not look for them
)

// Decoded is a decoded body.
type Decoded struct {
	// Object is of the Go type registered for GVK, defaulted; it belongs to the caller.
	Object runtime.Object
	// GVK is what the body said of itself, completed with the expected one where it was silent.
	GVK schema.GroupVersionKind
	// Problems are the unknown and duplicate fields, worded as kube-apiserver does (`unknown field "spec.foo"`,
	// `duplicate field "spec.a"`). Always empty with Ignore.
	Problems []error
}

// Format is one wire format of objects: JSON, YAML, CBOR, or protobuf, which only MediaType and Streams hold for.
type Format interface {
	// MediaType is the type without parameters, such as "application/json".
	MediaType() string
	// ToJSON returns body, in this format, as JSON, and the duplicate fields that the translation would hide
	// when problems are wanted. The result may share body's memory.
	ToJSON(body []byte, v Validation) (json []byte, problems []error, err error)
	// FromJSON returns JSON text, of one value, in this format, as a response body: it ends with a newline, but
	// for indented JSON and for CBOR, which have none. pretty asks for an indented form, where the format has one. text is not
	// changed.
	FromJSON(json []byte, pretty bool) ([]byte, error)
	// Streams tells whether a watch can be written in this format.
	Streams() bool
}
