package engines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// JSON applies a JSON Patch.
func (b Bounds) JSON(ctx context.Context, doc, patch []byte) ([]byte, *Refusal) {
	operations, refusal := b.decodeOperations(doc, patch)
	if refusal != nil {
		return nil, refusal
	}
	object, refusal := decodeDocument(doc)
	if refusal != nil {
		return nil, refusal
	}
	p := &patcher{root: object, most: b.MovedItems}
	for i, op := range operations {
		if refusal := givenUp(ctx); refusal != nil {
			return nil, refusal
		}
		switch err := p.apply(op); {
		case errors.Is(err, errMoved):
			return nil, tooLarge("adding and removing items of lists moves more than %d others aside", b.MovedItems)
		case err != nil:
			return nil, inapplicable(fmt.Errorf("operation %d: %w", i, err))
		}
	}
	return encode(p.root)
}

// operation is one operation of a JSON patch.
type operation struct {
	op         string
	path, from *string // nil if missing
	value      any     // nil if null or missing
}

// decodeOperations decodes a patch for doc, unless it has too many operations or values.
func (b Bounds) decodeOperations(doc, patch []byte) ([]operation, *Refusal) {
	if !json.Valid(patch) {
		return nil, &Refusal{Code: http.StatusBadRequest, Message: "invalid JSON patch"}
	}
	if refusal := b.Check(patch); refusal != nil {
		return nil, refusal
	}
	if refusal := b.checkValues(doc, patch); refusal != nil {
		return nil, refusal
	}
	var members []map[string]json.RawMessage
	if err := json.Unmarshal(patch, &members); err != nil {
		return nil, undecodable(err)
	}
	operations := make([]operation, len(members))
	for i, m := range members {
		if err := operations[i].decode(m); err != nil {
			return nil, undecodable(err)
		}
	}
	return operations, nil
}

func (o *operation) decode(members map[string]json.RawMessage) error {
	var op *string
	for name, to := range map[string]**string{"op": &op, "path": &o.path, "from": &o.from} {
		if text, ok := members[name]; ok {
			if err := json.Unmarshal(text, to); err != nil {
				return err
			}
		}
	}
	if op != nil {
		o.op = *op
	}
	text, ok := members["value"]
	if !ok {
		return nil
	}
	var err error
	o.value, err = decode(text)
	return err
}

// Reasons why an operation cannot be applied.
var (
	errNoPath   = errors.New("missing path")
	errNoTarget = errors.New("the path does not exist")
	errIndex    = errors.New("invalid array index")
	errTest     = errors.New("test failed")
	errCopied   = fmt.Errorf("copies add more than %d bytes", MaxCopied)
	errMoved    = errors.New("too many items of lists are moved aside")
)

// patcher is a document that is being patched.
type patcher struct {
	root   any
	copied int // number of bytes so far
	moved  int // number of shifted items so far
	most   int // maximum of moved
}

func (p *patcher) apply(o operation) error {
	if o.path == nil {
		return errNoPath
	}
	switch o.op {
	case "add":
		return p.add(*o.path, o.value)
	case "remove":
		_, err := p.remove(*o.path)
		return err
	case "replace":
		return p.replace(*o.path, o.value)
	case "test":
		return p.test(*o.path, o.value)
	}
	if o.op != "move" && o.op != "copy" {
		return fmt.Errorf("unexpected operation %q", o.op)
	}
	if o.from == nil {
		return errNoPath
	}
	if o.op == "copy" {
		return p.copy(*o.from, *o.path)
	}
	value, err := p.remove(*o.from)
	if err != nil {
		return err
	}
	return p.add(*o.path, value)
}

// place is the position that a path leads to: a member of an object, or an element of an array. A longer or shorter array needs
// set, which puts it into its container.
type place struct {
	object map[string]any
	array  []any
	set    func(array []any) // replaces the array in its container
	key    string
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// find returns the place of path. All containers on the way must exist.
func (p *patcher) find(path string) (place, error) {
	if strings.Count(path, "/") > maxDepth+1 { // no document is this deep
		return place{}, errNoTarget
	}
	names := strings.Split(path, "/")
	if len(names) < 2 {
		return place{}, errNoTarget
	}
	at, err := place{}.enter(p.root, func(v any) { p.root = v })
	if err != nil {
		return place{}, err
	}
	for _, name := range names[1 : len(names)-1] {
		at.key = unescape.Replace(name)
		next, err := at.get()
		if err != nil {
			return place{}, err
		}
		if at, err = at.enter(next, at.put); err != nil {
			return place{}, err
		}
	}
	at.key = unescape.Replace(names[len(names)-1])
	return at, nil
}

// enter returns a place in v. put replaces v in its container.
func (place) enter(v any, put func(any)) (place, error) {
	switch v := v.(type) {
	case map[string]any:
		return place{object: v}, nil
	case []any:
		return place{array: v, set: func(array []any) { put(array) }}, nil
	}
	return place{}, errNoTarget
}

// index returns the array index that key has, in an array of n elements.
func (at place) index(n int) (int, error) {
	i, err := strconv.Atoi(at.key)
	if err != nil {
		return 0, errIndex
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return 0, errIndex
	}
	return i, nil
}

// get returns the value at the place, nil for a missing member.
func (at place) get() (any, error) {
	if at.object != nil {
		return at.object[at.key], nil
	}
	i, err := at.index(len(at.array))
	if err != nil {
		return nil, err
	}
	return at.array[i], nil
}

// put sets the value at a place for which get succeeds.
func (at place) put(v any) {
	if at.object != nil {
		at.object[at.key] = v
	} else if i, err := at.index(len(at.array)); err == nil {
		at.array[i] = v
	}
}

func (p *patcher) add(path string, v any) error {
	at, err := p.find(path)
	if err != nil {
		return err
	}
	if at.object != nil {
		at.object[at.key] = v
		return nil
	}
	if at.key == "-" {
		at.set(append(at.array, v))
		return nil
	}
	i, err := at.index(len(at.array) + 1)
	if err != nil {
		return err
	}
	if p.moved += len(at.array) - i; p.moved > p.most {
		return errMoved
	}
	at.set(slices.Insert(at.array, i, v))
	return nil
}

func (p *patcher) remove(path string) (any, error) {
	at, err := p.find(path)
	if err != nil {
		return nil, err
	}
	v, err := at.get()
	if err != nil {
		return nil, err
	}
	if at.object == nil {
		i, err := at.index(len(at.array))
		if err != nil {
			return nil, err
		}
		if p.moved += len(at.array) - i; p.moved > p.most {
			return nil, errMoved
		}
		at.set(slices.Delete(at.array, i, i+1))
		return v, nil
	}
	if _, ok := at.object[at.key]; !ok {
		return nil, errNoTarget
	}
	delete(at.object, at.key)
	return v, nil
}

func (p *patcher) replace(path string, v any) error {
	if path == "" {
		switch v.(type) {
		case map[string]any, []any:
			p.root = v
			return nil
		}
		return errors.New("the whole document can be replaced by an object or array only")
	}
	at, err := p.find(path)
	if err != nil {
		return err
	}
	if _, err := at.get(); err != nil {
		return err
	}
	at.put(v)
	return nil
}

func (p *patcher) test(path string, want any) error {
	got := p.root
	if path != "" {
		at, err := p.find(path)
		if err != nil {
			return err
		}
		if got, err = at.get(); err != nil {
			return err
		}
	}
	if !equal(got, want) {
		return errTest
	}
	return nil
}

func (p *patcher) copy(from, path string) error {
	at, err := p.find(from)
	if err != nil {
		return err
	}
	v, err := at.get()
	if err != nil {
		return err
	}
	size, deep := measure(v, MaxCopied-p.copied)
	if p.copied += size; deep || p.copied > MaxCopied {
		return errCopied
	}
	return p.add(path, deepCopy(v))
}

// deepCopy copies a value. The value must not be too deep for recursion, which measure checks.
func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			out[key] = deepCopy(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = deepCopy(item)
		}
		return out
	}
	return v
}

// equal compares two values. It compares numbers by their text, as kube-apiserver does. The recursion is not deeper than the less
// deep value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, member := range a {
			if other, ok := b[key]; !ok || !equal(member, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}
