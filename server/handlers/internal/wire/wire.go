// Package wire writes the objects of one kind in the forms that clients ask for.
//
// A form is a view in an encoding. The view is what of an object is shown, and makes JSON of it:
//
//	the object itself        object.go
//	its metadata alone       partial.go   PartialObjectMetadata
//	a row of a table         table.go     Table
//
// The encoding is how that is written, as a body of its own, as an item of a list, and as an event of a watch:
//
//	JSON, also indented      json.go
//	YAML                     yaml.go      no watches
//	CBOR                     cbor.go      https://www.rfc-editor.org/rfc/rfc8949
//	protobuf                 protobuf.go  https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
//
// A new view or encoding is a new file here: nobody else compares media types or kinds of views. [Forms] chooses the form of an
// answer, and a [Writer] writes that answer.
//
// An [Item] is a record or an object. A record that is stored in the version of the URL is not decoded for JSON: its own bytes
// are the answer, for a view of metadata those of its metadata. What has to be made of a record is kept for the next request
// where [Objects] or the item say so.
package wire

import (
	"net/http"

	"github.com/keelson-dev/keelson/runtime"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// view is what of an object a form shows. It has no state but for that of a table, which one Writer uses.
type view interface {
	// alone appends the JSON of an item that is shown for itself.
	alone(w *Writer, dst []byte, it Item) ([]byte, error)
	// listed appends the JSON of an item of a list, without what comes between two.
	listed(w *Writer, dst []byte, it Item) ([]byte, error)
	// frame returns what goes around the items of a list in JSON.
	frame(w *Writer, lm metav1.ListMeta) Frame
	// frameCBOR returns the same as values: the metadata in JSON, and whether a list without items has null.
	frameCBOR(w *Writer, lm metav1.ListMeta) (metadata []byte, null bool)
	// listKind is the kind that a list says it is.
	listKind(w *Writer) schema.GroupVersionKind
	// items is the member of a list that has the items.
	items() string
	// message returns an item as an object with a protobuf form, and says of which kind the object is.
	message(w *Writer, it Item) (runtime.Object, schema.GroupVersionKind, error)
	// messageFields are the numbers of the fields of a list in protobuf.
	messageFields(w *Writer) (metadata, items protowire.Number)
	// keeps reports whether the bytes of an item may be kept for other requests.
	keeps() bool
	// sure reports whether no item can fail to be shown in JSON. direct says that all items are records in the version of the
	// URL.
	sure(w *Writer, direct bool) bool
	// wrote is called after each event of a watch.
	wrote()
}

// encoding is how a form is written. It has no state.
type encoding interface {
	// mediaType is the Content-Type of an answer, streamType that of a watch.
	mediaType() string
	streamType() string
	// alone returns an item as the body of an answer: made in buf, or bytes that may be shared.
	alone(w *Writer, buf *[]byte, it Item) ([]byte, error)
	// listed appends an item of a list, without what comes between two, which is between.
	listed(w *Writer, dst []byte, it Item) ([]byte, error)
	between() string
	// event appends an event of a watch with its frame.
	event(w *Writer, dst []byte, kind string, it Item) ([]byte, error)
	// socket returns an event as the payload of a message of a WebSocket, and whether the message is text.
	socket(event []byte) (payload []byte, text bool)
	// frame returns what goes around the items of a list. They are count, and have size bytes with what is between them.
	frame(w *Writer, lm metav1.ListMeta, count int, size int64) (Frame, error)
	// plain reports whether the form is the JSON of the view as it is.
	plain() bool
	// keeps reports whether the bytes of an item may be kept for other requests.
	keeps() bool
	// objects reports whether every item is decoded to be written.
	objects() bool
}

// Form is how an answer is written: what is shown of objects, and in which encoding.
type Form struct {
	encoding encoding
	as       schema.GroupVersionKind    // the view's kind, such as meta.k8s.io/v1 Table; zero: the objects themselves
	include  metav1.IncludeObjectPolicy // of a table
}

// Verbatim reports whether the items of an answer whose records are all in the version of the URL are the records' own bytes.
func (f Form) Verbatim() bool { return f.as.Kind == "" && f.encoding.plain() }

// Frame is what goes around the items of a list: Head and Tail. A list without items is Empty instead.
type Frame struct {
	Head, Tail, Empty []byte
	// Sized says that Head tells how many bytes follow: the list must have as many as was said.
	Sized bool
}

// notAcceptable is the error of an object that has no form of the kind that was asked for.
func notAcceptable(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: message,
	}}
}
