package engines

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Misfit is a number that is neither an int64 nor a float64.
type Misfit struct {
	Number json.Number
	steps  []string // to it, the last one first
}

// Path is where the number is: .spec.sizes[].
func (m *Misfit) Path() string {
	var b strings.Builder
	for _, step := range slices.Backward(m.steps) {
		b.WriteString(step)
	}
	return b.String()
}

// WithNumbers returns v, as decode made it, with int64 and float64 in the place of its numbers' texts, or the first
// Misfit. A large whole number is a float64 if it is written as one again with the same digits; keep leaves the others
// the texts they are. The path is put together only for a Misfit: in a deep value those of all members would take the
// square of its size.
func WithNumbers(v any, keep bool) (any, *Misfit) {
	var bad *Misfit
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if v[key], bad = WithNumbers(member, keep); bad != nil {
				bad.steps = append(bad.steps, key, ".")
				return nil, bad
			}
		}
	case []any:
		for i, item := range v {
			if v[i], bad = WithNumbers(item, keep); bad != nil {
				bad.steps = append(bad.steps, "[]")
				return nil, bad
			}
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		whole := !strings.ContainsAny(v.String(), ".eE")
		if n, err := v.Float64(); err == nil && (!whole || strconv.FormatFloat(n, 'f', -1, 64) == v.String()) {
			return n, nil
		}
		if whole && keep {
			return v, nil
		}
		return nil, &Misfit{Number: v}
	}
	return v, nil
}
