// Package patch applies the patches of the Kubernetes API to JSON documents: JSON Patch (RFC 6902), JSON Merge Patch (RFC 7386),
// strategic merge patches, and server-side apply.
//
// [JSONPatch], [MergePatch] and [StrategicMergePatch] take and return JSON texts, and keep nothing. The result has the same
// meaning as the document with the patch, but not the same text: members are in alphabetical order, so a canonical form needs
// decoding. Integers keep their precision; JSONPatch and MergePatch keep the text of all numbers.
//
//	patched, err := patch.MergePatch(doc, []byte(`{"spec":{"size":3,"color":null}}`))
//
// A strategic merge patch also needs the Go type of the document, for the struct tags patchStrategy and patchMergeKey.
//
// A [FieldManager] maintains metadata.managedFields for the kinds of a runtime.Scheme, and merges applied configurations by them.
// Its [Models] have the facts about a kind that the merge needs, such as the keys of lists. Models are made from the definitions
// that are published in OpenAPI, with the struct tags listType, listMapKey and mapType and the markers in doc comments.
//
// Every error of a patch, and of a configuration that cannot be applied, is an [*Error] with the HTTP code of kube-apiserver, or
// with a better one where kube-apiserver responds with 500: 400 for an invalid patch, 413 for a patch that costs too much, 422
// for a patch that does not fit the document. Conflicts between managers, and some errors of a configuration, are StatusErrors of
// apimachinery.
//
// # Versions
//
// The fields that an endpoint does not change, such as the status, keep their managers when an object is written there, in whichever
// version, and conflict with none. kube-apiserver lets go of the managers of the status if they have written in another version than
// the request, or reports a conflict with them. The nulls of an applied configuration conflict with no other manager: a field with a
// null is not in the merged object. kube-apiserver reports a conflict if the manager has written in another version than the stored
// one. An object that is applied without fields, and whose fields the manager has removed, is not in the merged object.
// kube-apiserver makes it null if a manager has written in another version.
//
// # Bounds
//
// The cost of a patch is bounded by [Bounds]. The functions [JSONPatch], [MergePatch] and [StrategicMergePatch] use its zero
// value. The methods of Bounds take a context, and stop when it is done. The time for a strategic merge grows with the square of
// the lengths of the lists; the time for all other patches is linear in the sizes of document and patch. There are further
// bounds: "copy" operations may add at most [MaxCopied] bytes in total, the result of a patch may be nested as deep as
// encoding/json decodes, the fields of objects wider than [MaxMembers] are not managed, and metadata.managedFields has at most
// [MaxManagers] entries.
package patch

import (
	"context"
	"reflect"
)

// Error is the reason why a patch was refused.
type Error struct {
	// Code is an HTTP status: 400, 413 or 422.
	Code int
	// Message is the text for the client, in the words of kube-apiserver. For code 413 it is the text after "Request entity too
	// large: ".
	Message string
	// Err is the detailed cause, which kube-apiserver does not send to the client. It is nil if Message has all details.
	Err error
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// JSONPatch applies a JSON Patch (RFC 6902) to doc, a JSON object, and returns the result. It applies all operations or none. The
// result may be another JSON value if an operation replaces the whole document.
//
// As in kube-apiserver, some invalid patches are accepted, because clients rely on it:
//
//   - "replace" of a missing object member adds the member
//   - a negative array index counts from the end; "/-1" of "add" appends
//   - a path may have any text before its first slash
//   - "test" treats a missing member as null
func JSONPatch(doc, patch []byte) ([]byte, error) {
	return Bounds{}.JSONPatch(context.Background(), doc, patch)
}

// MergePatch applies a JSON Merge Patch (RFC 7386) to doc, a JSON object, and returns the result. The patch must be an object
// too, because a patch of another type would replace the whole document by a value that is not an object.
func MergePatch(doc, patch []byte) ([]byte, error) {
	return Bounds{}.MergePatch(context.Background(), doc, patch)
}

// StrategicMergePatch applies a strategic merge patch to doc, a JSON object, and returns the result. t is the Go struct type of
// doc. The tags patchStrategy and patchMergeKey of its fields say which lists are merged, and by which key; all other lists are
// replaced. The directives are those of
// https://github.com/kubernetes/community/blob/main/contributors/devel/sig-api-machinery/strategic-merge-patch.md.
func StrategicMergePatch(doc, patch []byte, t reflect.Type) ([]byte, error) {
	return Bounds{}.StrategicMergePatch(context.Background(), doc, patch, t)
}
