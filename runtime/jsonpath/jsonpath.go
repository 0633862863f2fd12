package jsonpath

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Path is a compiled path. It is immutable and may be used concurrently. The zero Path finds nothing.
type Path struct {
	actions []steps // the first is the path; further ones come from text after a closing brace
}

// Find returns the values that the path leads to in root, in order. A value on the way that is absent or null, or that is not an
// object where a member is selected, yields nothing. Find returns an error if a value is not a list where an element is selected,
// if an element does not exist, or if values cannot be compared.
func (p *Path) Find(root any) ([]any, error) { return p.find(&evaluation{left: mostSteps}, root) }

// find is Find with a given evaluation.
func (p *Path) find(e *evaluation, root any) ([]any, error) {
	var first []any
	for i, action := range p.actions {
		if i > 0 && !e.spend(1) { // an action may have no steps
			return nil, e.fatal
		}
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

// Text returns a value as kubectl prints it: a string unchanged, an object or a list as JSON, and null as "<no value>".
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
