// Package engines applies JSON patches, merge patches and strategic merge patches. It also decodes, encodes and measures
// documents, and handles the numbers in them.
package engines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// MaxCopied is the maximum number of bytes of JSON that a patch may copy.
const MaxCopied = 3 << 20

// Bounds has the fields of Bounds in package patch, with all defaults filled in. A missing bound is a number that is never
// reached.
type Bounds struct {
	Operations, MovedItems, Values, DocumentValues, MergedItems int
}

const maxDepth = 10000 // the maximum depth that encoding/json decodes

// Refusal is the reason why a patch was refused, with the fields of Error in package patch. If Code is 0, the patch was
// cancelled, and Err is the error of the context.
type Refusal struct {
	Code    int
	Message string
	Err     error
}

// A budget ends the work on a patch when its context is done. It is called for each step, and checks the context once in many
// steps.
type budget struct {
	done  <-chan struct{}
	steps int
}

// over counts steps, and reports whether the context is done.
func (b *budget) over(steps int) bool {
	const each = 4096
	if b.steps += steps; b.steps < each {
		return false
	}
	b.steps = 0
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// givenUp returns the Refusal of a patch whose context is done, or nil.
func givenUp(ctx context.Context) *Refusal {
	if err := ctx.Err(); err != nil {
		return &Refusal{Err: err}
	}
	return nil
}

// tooLarge returns the Refusal of a patch that costs too much.
func tooLarge(format string, args ...any) *Refusal {
	return &Refusal{Code: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf(format, args...)}
}

// Check refuses a patch with too many values or, if it is an array, too many operations.
func (b Bounds) Check(patch []byte) *Refusal {
	if n := Operations(patch); n > b.Operations {
		return tooLarge("The allowed maximum operations in a JSON patch is %d, got %d", b.Operations, n)
	}
	return b.checkValues(nil, patch)
}

// Operations returns the number of elements of a JSON array, and 0 for other texts. It decodes nothing.
func Operations(text []byte) int {
	n, depth, empty := 0, 0, true
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\n', '\r':
			continue
		case '"':
			i = afterString(text, i)
		case '{', '[':
			if depth++; depth == 1 {
				if text[i] == '{' {
					return 0
				}
				continue
			}
		case '}', ']':
			depth--
		case ',':
			if depth == 1 {
				n++
			}
		}
		if depth == 0 {
			break
		}
		empty = false
	}
	if empty {
		return 0
	}
	return n + 1
}

// checkValues refuses a patch, or a patch and its document, with so many values that they would take much memory. It decodes
// nothing.
func (b Bounds) checkValues(doc, patch []byte) *Refusal {
	changes := valuesIn(patch)
	if changes > b.Values {
		return tooLarge("a patch can have %d values", b.Values)
	}
	if valuesIn(doc)+changes > b.DocumentValues {
		return tooLarge("an object of %d values cannot be patched; it can be replaced", b.DocumentValues)
	}
	return nil
}

// valuesIn returns the approximate number of values in a JSON text. It counts opening brackets and commas, and one for the text.
func valuesIn(text []byte) int {
	n := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[', ',':
			n++
		case '"':
			i = afterString(text, i)
		}
	}
	return n
}

// afterString returns the index of the quote that ends the string which begins at i.
func afterString(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
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

// decode decodes one JSON value, with numbers as json.Number.
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

// DecodeObject decodes a JSON object, with numbers as json.Number.
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

// decodeDocument decodes the document to patch.
func decodeDocument(doc []byte) (map[string]any, *Refusal) {
	object, err := DecodeObject(doc)
	if err != nil {
		return nil, inapplicable(fmt.Errorf("document: %w", err))
	}
	return object, nil
}

// encode encodes a patched document. It fails if the patch made the document too deep to be decoded again.
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

// measure returns the approximate number of bytes of v as JSON, and whether it is nested too deeply. It stops after limit bytes;
// a negative limit means no limit. It does not recurse, because v may be deeper than the stack.
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
