package jsonpath

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Path is a compiled path. It is immutable and may be used concurrently. The zero Path finds nothing.
type Path struct {
	actions []steps // the first is the path, others are what its text has behind a closing brace
}

// Find returns what the path leads to in root, in order: nothing where something on the way is absent or null, or is no object
// although a member of it is wanted. It is an error if something is no list although an element of it is wanted, if an element
// is not there, or if values cannot be compared.
func (p *Path) Find(root any) ([]any, error) { return p.find(&evaluation{left: mostValues}, root) }

// find is Find as an evaluation.
func (p *Path) find(e *evaluation, root any) ([]any, error) {
	var first []any
	for i, action := range p.actions {
		found, err := action.eval(e, []any{root})
		if err = errors.Join(err, e.fatal); err != nil {
			return nil, err
		}
		if i == 0 {
			first = found
		}
	}
	return first, nil
}

// Text is a value that was found as kubectl prints it: a string as it is, an object or a list as JSON, and null, of which one
// may think otherwise, as "<no value>".
func Text(value any) (string, error) {
	switch value := value.(type) {
	case nil:
		return "<no value>", nil
	case string:
		return value, nil
	case map[string]any, []any:
		text, err := json.Marshal(value)
		return string(text), err
	}
	return fmt.Sprint(value), nil
}
