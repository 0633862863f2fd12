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
// A patch has at most [MaxValues] values, and is of a document with at most [MaxDocument]. A JSON patch has at most [MaxOperations]
// operations, of which "copy" may add at most [MaxCopied] bytes in all, and "add", "remove" and "move" may move aside [MaxMoved]
// items of arrays. The result of any patch may be nested as deep as encoding/json decodes. Lists longer than [MaxListItems] or so
// are not merged strategically, and the fields of objects wider than [MaxMembers] not managed: the time for both grows with the
// square. Of the others it is linear in the sizes of document and patch. More than [MaxManagers] are not kept.
//
// [JSONPatchContext] and its companions stop when a context is done.
package patch

import (
	"context"
	"reflect"

	"github.com/keelson-dev/keelson/runtime/patch/internal/engines"
)

// Bounds of a JSON patch.
const (
	MaxOperations = engines.MaxOperations // 10,000
	MaxCopied     = engines.MaxCopied     // 3 MiB of JSON
	MaxMoved      = engines.MaxMoved      // 100,000,000 items: 10,000 operations at the beginning of an array of 10,000
)

// Bounds of all patches but applied configurations, in values of JSON: scalars, arrays and objects.
const (
	MaxValues   = engines.MaxValues   // 100,000 in a patch
	MaxDocument = engines.MaxDocument // 300,000 in a document and a patch of it
)

// MaxListItems is about how many items a list may have that a strategic merge patch merges with one as long: the time
// grows with the square of what both have together, and all lists that a patch merges are counted. It is 1,500.
const MaxListItems = engines.MaxListItems

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

// Check refuses, with an [*Error], a patch in JSON with more than [MaxValues] values or, if it is an array, [MaxOperations] operations.
// It reads the text once and decodes nothing. Those who apply a patch need not call it: it is for who decodes one before.
func Check(patch []byte) error {
	_, err := result(nil, engines.Check(patch))
	return err
}

// JSONPatch applies a JSON Patch (RFC 6902) to doc, a JSON object, and returns the result: all operations or none.
// It may be other than an object when an operation replaced the whole document.
func JSONPatch(doc, patch []byte) ([]byte, error) {
	return JSONPatchContext(context.Background(), doc, patch)
}

// JSONPatchContext is JSONPatch, but stops with the error of ctx when that is done.
func JSONPatchContext(ctx context.Context, doc, patch []byte) ([]byte, error) {
	return result(engines.JSON(ctx, doc, patch))
}

// MergePatch applies a JSON Merge Patch (RFC 7386) to doc, a JSON object, and returns the result. The patch must
// be an object too: a patch that replaces the whole document by something else makes no object of any kind.
func MergePatch(doc, patch []byte) ([]byte, error) {
	return MergePatchContext(context.Background(), doc, patch)
}

// MergePatchContext is MergePatch, but stops with the error of ctx when that is done.
func MergePatchContext(ctx context.Context, doc, patch []byte) ([]byte, error) {
	return result(engines.Merge(ctx, doc, patch))
}

// StrategicMergePatch applies a strategic merge patch to doc, a JSON object, and returns the result. t is the Go
// struct that doc is the JSON of: the tags patchStrategy and patchMergeKey of its fields say which lists are merged, and
// by which key; all others are replaced. The directives are those of
// https://github.com/kubernetes/community/blob/main/contributors/devel/sig-api-machinery/strategic-merge-patch.md.
func StrategicMergePatch(doc, patch []byte, t reflect.Type) ([]byte, error) {
	return StrategicMergePatchContext(context.Background(), doc, patch, t)
}

// StrategicMergePatchContext is StrategicMergePatch, but stops with the error of ctx when that is done.
func StrategicMergePatchContext(ctx context.Context, doc, patch []byte, t reflect.Type) ([]byte, error) {
	return result(engines.Strategic(ctx, doc, patch, t))
}

func result(text []byte, refusal *engines.Refusal) ([]byte, error) {
	switch {
	case refusal == nil:
	case refusal.Code == 0:
		return nil, refusal.Err
	default:
		return nil, (*Error)(refusal)
	}
	return text, nil
}
