// Package jsonvalue handles values of decoded JSON independently of their schema: comparisons, positions in a value, errors, and
// the metadata of objects.
package jsonvalue

import (
	"fmt"
	"math"

	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// TypeOf returns the JSON type of a value that is not null, and the format of a number.
func TypeOf(v any) (string, string) {
	switch v.(type) {
	case string:
		return word.String, ""
	case int64:
		return word.Integer, "int64"
	case float64:
		return word.Number, "float64"
	case bool:
		return word.Boolean, ""
	case []any:
		return word.Array, ""
	case map[string]any:
		return word.Object, ""
	}
	return fmt.Sprintf("%T", v), "" // not decoded JSON
}

// Float returns a number as a float64.
func Float(v any) float64 {
	if v, ok := v.(int64); ok {
		return float64(v)
	}
	v2, _ := v.(float64)
	return v2
}

// IsWhole reports whether a float is a whole number in the range in which floats are exact.
func IsWhole(v float64) bool {
	const exact = 1<<53 - 1
	return v == math.Trunc(v) && math.Abs(v) <= exact
}

// IsAlmostWhole reports whether kube-openapi takes a float for a whole number, which includes small rounding errors.
func IsAlmostWhole(v float64) bool {
	return IsWhole(v) || validate.MultipleOf("", "", v, 1) == nil
}
