// Package engines applies the three kinds of patches that are pure: JSON patches, merge patches and strategic merge patches.
// They share how documents are decoded, encoded and measured, and what numbers are in them.
package engines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Bounds of patches, which package patch explains.
const (
	MaxOperations = 10000
	MaxCopied     = 3 << 20 // bytes of JSON
	MaxListItems  = 2000
)

const maxDepth = 10000 // that encoding/json decodes

// Refusal says why a patch was refused, as the Error of package patch does.
type Refusal struct {
	Code    int
	Message string
	Err     error
}

func undecodable(err error) *Refusal {
	return &Refusal{Code: http.StatusBadRequest, Message: fmt.Sprintf("error decoding patch: %v", err)}
}

func inapplicable(err error) *Refusal {
	return &Refusal{
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

// DecodeObject reads a JSON object, with numbers as json.Number.
func DecodeObject(text []byte) (map[string]any, error) {
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
func decodeDocument(doc []byte) (map[string]any, *Refusal) {
	object, err := DecodeObject(doc)
	if err != nil {
		return nil, inapplicable(fmt.Errorf("document: %w", err))
	}
	return object, nil
}

// encode writes a patched document, unless patching made it too deep to be read again.
func encode(v any) ([]byte, *Refusal) {
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
