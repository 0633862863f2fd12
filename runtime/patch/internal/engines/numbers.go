package engines

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Misfit is a number that fits neither an int64 nor a float64.
type Misfit struct {
	Number json.Number // Number is the text of the number.
	steps  []string    // path to the number, the last step first
}

// Path returns the path of the number: .spec.sizes[].
func (m *Misfit) Path() string {
	var b strings.Builder
	for _, step := range slices.Backward(m.steps) {
		b.WriteString(step)
	}
	return b.String()
}

// WithNumbers replaces the numbers in v, as decode returned it, by int64 and float64, and returns v or the first Misfit. A whole
// number beyond int64 becomes a float64 if the float has the same digits. With keep, other whole numbers remain json.Number. The
// path is made only for a Misfit, because the paths of all members of a deep value would take the square of its size.
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
