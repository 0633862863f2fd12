// Package wire writes the objects of one kind in the forms that clients ask for.
//
// A form is a view in an encoding. The view selects what is shown of an object, and makes JSON of it:
//
//	the object itself        object.go
//	its metadata alone       partial.go   PartialObjectMetadata
//	a row of a table         table.go     Table
//
// The encoding writes that JSON as the body of an answer, as an item of a list, and as an event of a watch:
//
//	JSON, also indented      json.go
//	YAML                     yaml.go      no watches
//	CBOR                     cbor.go      https://www.rfc-editor.org/rfc/rfc8949
//	protobuf                 protobuf.go  https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
//
// Each view and each encoding is one file. Only this package compares media types and the kinds of views. [Forms] selects the
// form of an answer, and a [Writer] writes that answer.
//
// An [Item] is a record or an object. If a record is stored in the version of the URL, its stored bytes are written to a JSON
// answer without decoding. In a view of the metadata, these are the bytes of the metadata. Other encodings of a record are cached
// for later requests if [Objects] or the item has a cache.
package wire

import (
	"net/http"

	"github.com/keelson-dev/keelson/runtime"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// view selects what a form shows of an object. A view has no state, except that of a table, which one Writer uses.
type view interface {
	// alone appends the JSON of an item that is not in a list.
	alone(w *Writer, dst []byte, it Item) ([]byte, error)
	// listed appends the JSON of an item of a list, without a separator.
	listed(w *Writer, dst []byte, it Item) ([]byte, error)
	// frame returns the JSON around the items of a list.
	frame(w *Writer, lm metav1.ListMeta) Frame
	// frameCBOR returns the same for CBOR: the metadata in JSON, and whether an empty list has null instead of an empty array.
	frameCBOR(w *Writer, lm metav1.ListMeta) (metadata []byte, null bool)
	// listKind returns the kind of a list.
	listKind(w *Writer) schema.GroupVersionKind
	// items returns the name of the list's field that contains the items.
	items() string
	// message returns an item as an object with a protobuf form, and the kind of that object.
	message(w *Writer, it Item) (runtime.Object, schema.GroupVersionKind, error)
	// messageFields returns the numbers of the fields of a list in protobuf.
	messageFields(w *Writer) (metadata, items protowire.Number)
	// keeps reports whether the bytes of an item may be cached for other requests.
	keeps() bool
	// sure reports whether no item can fail to be written as JSON. direct says that all items are records in the version of the
	// URL.
	sure(w *Writer, direct bool) bool
	// wrote is called after each event of a watch.
	wrote()
}

// encoding writes the JSON of a view in one format. It has no state.
type encoding interface {
	// mediaType returns the Content-Type of an answer, streamType that of a watch.
	mediaType() string
	streamType() string
	// alone returns an item as the body of an answer. The bytes are in buf, or are shared and must not be changed.
	alone(w *Writer, buf *[]byte, it Item) ([]byte, error)
	// listed appends an item of a list without a separator. between returns the separator.
	listed(w *Writer, dst []byte, it Item) ([]byte, error)
	between() string
	// event appends an event of a watch, as it is written to the stream.
	event(w *Writer, dst []byte, kind string, it Item) ([]byte, error)
	// socket returns an event as the payload of a message of a WebSocket, and whether the message is text.
	socket(event []byte) (payload []byte, text bool)
	// frame returns the bytes around the items of a list. count is the number of the items, and size is their size in bytes with
	// all separators.
	frame(w *Writer, lm metav1.ListMeta, count int, size int64) (Frame, error)
	// plain reports whether the encoding is the JSON of the view without a change.
	plain() bool
	// json returns the JSON of the text of an answer, which may be text itself, or nil if the text has not all that it needs.
	json(text []byte) ([]byte, error)
	// keeps reports whether the bytes of an item may be cached for other requests.
	keeps() bool
	// objects reports whether every item must be decoded to be written.
	objects() bool
}

// Form says how an answer is written: which view of the objects, and in which encoding.
type Form struct {
	encoding encoding
	as       schema.GroupVersionKind    // the kind of the view, such as meta.k8s.io/v1 Table; zero is whole objects
	include  metav1.IncludeObjectPolicy // what each row of a table includes
}

// Verbatim reports whether records of the URL's version are written as their own bytes.
func (f Form) Verbatim() bool { return f.as.Kind == "" && f.encoding.plain() }

// Plain returns the form that has the same view in JSON without indentation.
func (f Form) Plain() Form {
	f.encoding = compact{}
	return f
}

// IsPlain reports whether f is JSON without indentation.
func (f Form) IsPlain() bool { return f.encoding.plain() }

// JSON returns the text of an answer in this form as JSON without indentation, without its objects. The result may be text itself. It
// is nil if the objects are needed.
func (f Form) JSON(text []byte) ([]byte, error) { return f.encoding.json(text) }

// Frame is the bytes around the items of a list.
type Frame struct {
	// Head is before the items and Tail is after them. Empty is the whole list if it has no items.
	Head, Tail, Empty []byte
	// Sized says that Head contains the length of the list, so that the items must have the size that was passed.
	Sized bool
}

// notAcceptable returns the error for an object that is not available in the requested form.
func notAcceptable(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: message,
	}}
}
