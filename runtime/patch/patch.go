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
// A JSON patch has at most [MaxOperations] operations, of which "copy" may add at most [MaxCopied] bytes in all. The
// result of any patch may be nested as deep as encoding/json decodes. Lists longer than [MaxListItems] or so are not
// merged strategically, and the fields of objects wider than [MaxMembers] not managed: the time for both grows with the
// square. Of the others it is linear in the sizes of document and patch, but for array elements that are moved aside by
// "add" and "remove".
package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Bounds of a JSON patch.
const (
	MaxOperations = 10000
	MaxCopied     = 3 << 20 // bytes of JSON
)

const maxDepth = 10000 // that encoding/json decodes

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

func undecodable(err error) error {
	return &Error{Code: http.StatusBadRequest, Message: fmt.Sprintf("error decoding patch: %v", err)}
}

func inapplicable(err error) error {
	return &Error{
		Code:    http.StatusUnprocessableEntity,
		Message: "the server rejected our request due to an error in our request",
		Err:     err,
	}
}

// decode reads one JSON value, with numbers as json.Number.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("unexpected end of JSON input")
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("invalid character after top-level value")
	}
	return v, nil
}

// decodeObject is decode for an object.
func decodeObject(text []byte) (map[string]any, error) {
	v, err := decode(text)
	if err != nil {
		return nil, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	return object, nil
}

// decodeDocument reads the document that is to be patched.
func decodeDocument(doc []byte) (map[string]any, error) {
	object, err := decodeObject(doc)
	if err != nil {
		return nil, inapplicable(fmt.Errorf("document: %w", err))
	}
	return object, nil
}

// encode writes a patched document, unless patching made it too deep to be read again.
func encode(v any) ([]byte, error) {
	if _, deep := measure(v, -1); deep {
		return nil, inapplicable(errors.New("the result is nested too deeply"))
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, inapplicable(err)
	}
	return text, nil
}

// measure returns about how many bytes v has as JSON, and whether it is nested too deeply. It stops when there
// are more than limit bytes; a negative limit is none. It does not recurse: v may be deeper than the stack.
func measure(v any, limit int) (size int, deep bool) {
	type node struct {
		v     any
		depth int
	}
	for todo := []node{{v, 1}}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n.depth > maxDepth {
			return size, true
		}
		size++
		switch v := n.v.(type) {
		case map[string]any:
			for key, member := range v {
				size += len(key) + len(`"":,`)
				todo = append(todo, node{member, n.depth + 1})
			}
		case []any:
			size += len(v)
			for _, item := range v {
				todo = append(todo, node{item, n.depth + 1})
			}
		case string:
			size += len(v) + 1
		case json.Number:
			size += len(v)
		default:
			size += len("null")
		}
		if limit >= 0 && size > limit {
			return size, false
		}
	}
	return size, false
}
