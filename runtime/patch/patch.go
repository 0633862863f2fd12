// Package patch changes JSON documents as the PATCH of the Kubernetes API does: JSON Patch (RFC 6902), JSON Merge Patch
// (RFC 7386), strategic merge patches, and server-side apply.
//
// # Patches
//
// [JSONPatch], [MergePatch] and [StrategicMergePatch] are pure: bytes in, bytes out, nothing kept and nothing shared. The
// result is JSON with the same meaning, not the same text: members are in alphabetical order, so that decoding it is the
// way to a canonical form. Integers keep their precision; all numbers of the first two keep their text.
//
//	patched, err := patch.MergePatch(doc, []byte(`{"spec":{"size":3,"color":null}}`))
//
// A strategic merge patch needs the Go type of the document as well, for the struct tags patchStrategy and patchMergeKey.
//
// # Field management
//
// A [FieldManager] keeps metadata.managedFields for the kinds of a runtime.Scheme, and merges applied configurations by
// it. What it must know of a kind, such as the keys of its lists, is in [Models], made of the same definitions that are
// published in OpenAPI: struct tags listType, listMapKey and mapType, and the markers in doc comments.
//
// # Errors
//
// Every error of a patch, and of what cannot be applied, is an [*Error] with the HTTP code that kube-apiserver gives it,
// where that is not a 500: 400 for a patch that is not one, 413 for one that would take too much, 422 for one that does
// not fit the document. Conflicts between managers, and some refusals of a configuration, are apimachinery's StatusErrors.
//
// # Where kube-apiserver reads RFC 6902 more widely
//
// A "replace" of an object member that is missing adds it; an array index may be negative and counts from the end
// then ("/-1" of "add" appends); a path may have anything before its first slash; "test" takes a missing member
// for null. Clients rely on what the server takes, so these hold here too.
//
// # Bounds
//
// What a patch costs is bounded by [Bounds], the zero value of which the functions [JSONPatch], [MergePatch] and
// [StrategicMergePatch] keep to. Those of strategic merges are there because the time grows with the square of the lists; of all
// others it is linear in the sizes of document and patch. Besides, "copy" operations may add at most [MaxCopied] bytes in all, the
// result of any patch may be nested as deep as encoding/json decodes, and the fields of objects wider than [MaxMembers] are not
// managed, nor more than [MaxManagers] kept.
//
// The methods of Bounds take a context, and stop when it is done.
package patch

import (
	"context"
	"reflect"
)

// Error says why a patch was refused.
type Error struct {
	// Code is an HTTP status: 400, 413 or 422.
	Code int
	// Message is for the client, in kube-apiserver's words. That of a 413 is what follows "Request entity too
	// large: ".
	Message string
	// Err is the cause in detail, which kube-apiserver does not tell; nil when Message says it all.
	Err error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// JSONPatch applies a JSON Patch (RFC 6902) to doc, a JSON object, and returns the result: all operations or none.
// It may be other than an object when an operation replaced the whole document.
func JSONPatch(doc, patch []byte) ([]byte, error) {
	return Bounds{}.JSONPatch(context.Background(), doc, patch)
}

// MergePatch applies a JSON Merge Patch (RFC 7386) to doc, a JSON object, and returns the result. The patch must
// be an object too: a patch that replaces the whole document by something else makes no object of any kind.
func MergePatch(doc, patch []byte) ([]byte, error) {
	return Bounds{}.MergePatch(context.Background(), doc, patch)
}

// StrategicMergePatch applies a strategic merge patch to doc, a JSON object, and returns the result. t is the Go
// struct that doc is the JSON of: the tags patchStrategy and patchMergeKey of its fields say which lists are merged, and
// by which key; all others are replaced. The directives are those of
// https://github.com/kubernetes/community/blob/main/contributors/devel/sig-api-machinery/strategic-merge-patch.md.
func StrategicMergePatch(doc, patch []byte, t reflect.Type) ([]byte, error) {
	return Bounds{}.StrategicMergePatch(context.Background(), doc, patch, t)
}
