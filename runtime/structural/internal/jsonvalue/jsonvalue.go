// Package jsonvalue is about values that are decoded JSON, whatever their schema: how they are compared, where something is in
// them, the errors about them, and the metadata of objects.
package jsonvalue

import (
	"fmt"
	"math"

	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// TypeOf returns the JSON type of a value that is not null, and the format that it has as a number.
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
	return fmt.Sprintf("%T", v), "" // no decoded JSON
}

// Float returns a number as a float.
func Float(v any) float64 {
	if v, ok := v.(int64); ok {
		return float64(v)
	}
	v2, _ := v.(float64)
	return v2
}

// IsWhole says that a float is a whole number as far as JSON numbers are exact.
func IsWhole(v float64) bool {
	const exact = 1<<53 - 1
	return v == math.Trunc(v) && math.Abs(v) <= exact
}

// IsAlmostWhole is the same for kube-openapi, which leaves some room for rounding.
func IsAlmostWhole(v float64) bool {
	return IsWhole(v) || validate.MultipleOf("", "", v, 1) == nil
}
