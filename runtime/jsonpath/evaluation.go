package jsonpath

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

const (
	// mostSteps limits the steps of an evaluation that has no Budget.
	mostSteps = 1 << 18
	// stepBytes is how many bytes of a text cost as much as one value.
	stepBytes = 64
	// fewMembers is the size up to which an object with short names is sorted again each time.
	fewMembers = 8
)

var (
	errTooMany = fmt.Errorf("the path comes across more than %d values and parts of %d bytes of texts", mostSteps, stepBytes)
	errLoop    = errors.New("range and end are not supported")
)

// evaluation is one evaluation of a path.
type evaluation struct {
	left  int                  // the number of steps that may still be taken: values that are visited, or stepBytes bytes of a text
	fatal error                // an error that ends the evaluation, even where other errors count as a result of a filter
	known map[uintptr]*members // of objects that are expensive to sort, by the addresses of the objects
}

// members is the members of an object, sorted by name.
type members struct {
	object map[string]any // is referenced so that its address is not used again
	names  []string
	values []any // nil until below has made them
}

// spend counts n steps, and reports whether so many may be taken.
func (e *evaluation) spend(n int) bool {
	if n > e.left {
		n, e.fatal = e.left, errTooMany
	}
	e.left -= n
	return e.fatal == nil
}

// get returns the member of v with the given name. Finding it reads the whole name.
func (e *evaluation) get(v any, name string) (value any, ok bool) {
	object, ok := v.(map[string]any)
	if !ok || !e.spend(len(name)/stepBytes) {
		return nil, false
	}
	value, ok = object[name]
	return value, ok
}

// below counts and returns the members of an object, sorted by name, the elements of a list, or the bytes of a string. ok is
// false if they are too many. The slice must not be changed.
func (e *evaluation) below(v any) (out []any, ok bool) {
	if !e.spend(size(v)) {
		return nil, false
	}
	switch v := v.(type) {
	case map[string]any:
		sorted, ok := e.sorted(v)
		if !ok {
			return nil, false
		}
		if sorted.values == nil {
			sorted.values = make([]any, len(sorted.names))
			for i, name := range sorted.names {
				sorted.values[i] = v[name]
			}
		}
		return sorted.values, true
	case []any:
		return v, true
	case string:
		out := make([]any, len(v))
		for i := range len(v) {
			out[i] = v[i]
		}
		return out, true
	}
	return nil, true
}

// sorted returns the members of an object. It counts the bytes of their names when it sorts them; the caller counts the members.
// The result is kept if sorting again would be expensive.
func (e *evaluation) sorted(object map[string]any) (m *members, ok bool) {
	address := reflect.ValueOf(object).Pointer()
	if m, ok := e.known[address]; ok {
		return m, true
	}
	m = &members{object: object, names: make([]string, 0, len(object))}
	long := 0
	for name := range object {
		m.names = append(m.names, name)
		long += len(name) / stepBytes
	}
	if !e.spend(long) {
		return nil, false
	}
	slices.Sort(m.names)
	if long > 0 || len(m.names) > fewMembers {
		if e.known == nil {
			e.known = map[uintptr]*members{}
		}
		e.known[address] = m
	}
	return m, true
}

// size returns the number of values directly below v.
func size(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	case string:
		return len(v)
	}
	return 0
}
