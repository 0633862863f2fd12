package jsonpath

import (
	"errors"
	"fmt"
)

// step maps values to the values that it finds in them. On an error it also returns the values that a filter which tests for
// existence counts as found.
type step interface {
	eval(e *evaluation, in []any) ([]any, error)
}

// steps are evaluated one after the other.
type steps []step

func (s steps) eval(e *evaluation, in []any) ([]any, error) {
	var err error
	for _, next := range s {
		if !e.spend(1 + len(in)) {
			return nil, e.fatal
		}
		if in, err = next.eval(e, in); err != nil {
			return in, err
		}
	}
	return in, nil
}

// direct reports whether steps cannot fail and treat each value on its own. Then the first value that they find is what first
// returns.
func (s steps) direct() bool {
	for _, next := range s {
		switch next.(type) {
		case member, all, descent:
		default:
			return false
		}
	}
	return true
}

// first returns the first value that direct steps find in v.
func (e *evaluation) first(s steps, v any) (found any, ok bool) {
	for i, next := range s {
		if !e.spend(1) {
			return nil, false
		}
		switch next := next.(type) {
		case member:
			if v, ok = e.get(v, string(next)); !ok {
				return nil, false
			}
		case all:
			values, ok := e.below(v)
			if !ok {
				return nil, false
			}
			for _, v := range values {
				if found, ok = e.first(s[i+1:], v); ok || e.fatal != nil {
					return found, ok
				}
			}
			return nil, false
		case descent:
			return e.firstBelow(s[i+1:], v)
		}
	}
	return v, true
}

// firstBelow returns the first value that direct steps find in the values that descent finds in v.
func (e *evaluation) firstBelow(s steps, v any) (found any, ok bool) {
	if size(v) == 0 {
		return nil, false
	}
	if found, ok = e.first(s, v); ok || e.fatal != nil {
		return found, ok
	}
	if _, ok := v.(string); ok {
		return nil, false
	}
	values, ok := e.below(v)
	if !ok {
		return nil, false
	}
	for _, v := range values {
		if found, ok = e.firstBelow(s, v); ok || e.fatal != nil {
			return found, ok
		}
	}
	return nil, false
}

// member is .name.
type member string

func (m member) eval(e *evaluation, in []any) ([]any, error) {
	var out []any
	for _, v := range in {
		if v, ok := e.get(v, string(m)); ok {
			out = append(out, v)
		}
	}
	return out, e.fatal
}

// all is .* and finds the values directly below.
type all struct{}

func (all) eval(e *evaluation, in []any) ([]any, error) {
	var out []any
	for _, v := range in {
		values, ok := e.below(v)
		if !ok {
			return nil, e.fatal
		}
		out = append(out, values...)
	}
	return out, nil
}

// descent is .. and finds the values themselves and all values below them that contain other values.
type descent struct{}

func (descent) eval(e *evaluation, in []any) ([]any, error) {
	var out []any
	descend(e, in, &out)
	return out, e.fatal
}

func descend(e *evaluation, in []any, out *[]any) {
	for _, v := range in {
		if size(v) == 0 {
			continue
		}
		*out = append(*out, v)
		if _, ok := v.(string); ok { // bytes contain no values
			continue
		}
		values, ok := e.below(v)
		if !ok {
			return
		}
		descend(e, values, out)
	}
}

// index is [1] or [0:4:2].
type index struct {
	start, end, step number
	single           bool // there is no end: only the element at start is selected
}

// number is an optional number.
type number struct {
	value int
	given bool
}

func (x index) eval(e *evaluation, in []any) ([]any, error) {
	var out []any
	for _, v := range in {
		if v == nil {
			continue
		}
		list, ok := v.([]any)
		if !ok {
			return in, fmt.Errorf("a %T is no list", v)
		}
		start, end, err := x.bounds(len(list))
		switch {
		case err != nil:
			return in, err
		case start == end: // the lists after this one yield nothing either
			return out, nil
		case x.step.given && x.step.value <= 0:
			return in, errors.New("the step must be larger than 0")
		}
		step := 1
		if x.step.given {
			step = x.step.value
		}
		if !e.spend(1 + (end-start-1)/step) {
			return nil, e.fatal
		}
		for ; start < end; start += min(step, end-start) {
			out = append(out, list[start])
		}
	}
	return out, nil
}

// bounds returns the start and end in a list of the given length. A negative number counts from the end.
func (x index) bounds(length int) (start, end int, err error) {
	start, end = x.start.value, length
	if start < 0 {
		start += length
	}
	if x.end.given {
		end = x.end.value
	}
	if end < 0 || end == 0 && x.single {
		end += length
	}
	switch {
	case start == end:
		return start, end, nil
	case start >= length || start < 0 || end > length || end < 0:
		return 0, 0, fmt.Errorf("there is no element %d to %d in a list of %d", start, end, length)
	case start > end:
		return 0, 0, fmt.Errorf("the start %d is behind the end %d", start, end)
	}
	return start, end, nil
}

// union is [0,2].
type union []steps

func (u union) eval(e *evaluation, in []any) ([]any, error) {
	var out []any
	for _, part := range u {
		found, err := part.eval(e, in)
		if err != nil {
			return in, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// text is a quoted text. It yields one value, whatever the number of input values.
type text string

func (t text) eval(*evaluation, []any) ([]any, error) { return []any{string(t)}, nil }

// constant is a number or a bool in place of a step.
type constant struct{ value any }

func (c constant) eval(_ *evaluation, in []any) ([]any, error) {
	out := make([]any, len(in))
	for i := range out {
		out[i] = c.value
	}
	return out, nil
}

// word is an identifier. None has a meaning here.
type word string

func (w word) eval(e *evaluation, in []any) ([]any, error) {
	switch w {
	case "range":
		e.fatal = errors.Join(e.fatal, errLoop)
		return in, errLoop
	case "end":
		return nil, errLoop
	}
	return in, wordError(w)
}

// wordError is the error of a word. Its text is not made in advance, because a filter may ignore the error for many elements.
type wordError word

func (w wordError) Error() string { return "unrecognized identifier " + string(w) }

// filter is [?(left operator right)], or [?(left)] with the operator "".
type filter struct {
	left, right steps
	operator    string
}

func (f filter) eval(e *evaluation, in []any) ([]any, error) {
	var out []any
	for _, v := range in {
		list, ok := v.([]any)
		if !ok {
			return in, fmt.Errorf("a %T is no list and cannot be filtered", v)
		}
		if !e.spend(len(list)) {
			return nil, e.fatal
		}
		for _, element := range list {
			ok, fault, err := f.passes(e, element)
			switch {
			case err != nil && fault:
				return in, err
			case err != nil:
				return out, err
			case ok:
				out = append(out, element)
			}
		}
	}
	return out, nil
}

// passes reports whether the filter selects an element. fault means that the error comes from one side, not from the comparison.
func (f filter) passes(e *evaluation, element any) (ok, fault bool, err error) {
	here := []any{element}
	left, err := f.left.eval(e, here)
	if e.fatal != nil {
		return false, true, e.fatal
	}
	if f.operator == "" {
		return len(left) > 0, false, nil
	}
	if err != nil || len(left) == 0 {
		return false, true, err
	}
	if len(left) > 1 {
		return false, true, errSeveral
	}
	right, err := f.right.eval(e, here)
	if err != nil || len(right) == 0 {
		return false, true, err
	}
	if len(right) > 1 {
		return false, true, errSeveral
	}
	ok, err = e.compare(f.operator, left[0], right[0])
	return ok, false, err
}
