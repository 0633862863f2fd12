package patch

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Configuration decodes what is to be applied, a JSON object, for [FieldManager.Apply]. Whole numbers which that would
// change, because they are beyond 64 bits with a sign, are an [*Error].
func Configuration(text []byte) (map[string]any, error) { return mergeable(text) }

// misfit is a number that is neither an int64 nor a float64.
type misfit struct {
	number json.Number
	steps  []string // to it, the last one first
}

// path is where the number is: .spec.sizes[].
func (m *misfit) path() string {
	var b strings.Builder
	for _, step := range slices.Backward(m.steps) {
		b.WriteString(step)
	}
	return b.String()
}

// withNumbers returns v, as decode made it, with int64 and float64 in the place of its numbers' texts, or the first
// misfit. A large whole number is a float64 if it is written as one again with the same digits; keep leaves the others
// the texts they are. The path is put together only for a misfit: in a deep value those of all members would take the
// square of its size.
func withNumbers(v any, keep bool) (any, *misfit) {
	var bad *misfit
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if v[key], bad = withNumbers(member, keep); bad != nil {
				bad.steps = append(bad.steps, key, ".")
				return nil, bad
			}
		}
	case []any:
		for i, item := range v {
			if v[i], bad = withNumbers(item, keep); bad != nil {
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
		return nil, &misfit{number: v}
	}
	return v, nil
}

// mergeable decodes an object for structured-merge-diff, which knows whole numbers as int64: a larger one would become
// another.
func mergeable(text []byte) (map[string]any, error) {
	fields, err := decodeObject(text)
	if err != nil {
		return nil, err
	}
	if _, bad := withNumbers(fields, false); bad != nil {
		return nil, &Error{Code: http.StatusBadRequest,
			Message: fmt.Sprintf("%s: %s is larger than the numbers that can be merged, whole ones of 64 bits with a sign", bad.path(), bad.number)}
	}
	return fields, nil
}
