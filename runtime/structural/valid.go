package structural

import (
	"math"
	"slices"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"
	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// This file decides whether a value is valid, without finding its errors. Nearly all values are valid, so this is fast and
// allocates nothing. judge.go finds the errors of the other values; it is slow and must give the same verdict.

// allows reports whether v is valid. It may also return false when effort is spent.
func (s *Schema) allows(v any, effort *Effort) bool {
	if s == nil {
		return true
	}
	if !effort.spend(visitEffort) {
		return false
	}
	if v == nil {
		return s.allowsNull()
	}
	switch v := v.(type) {
	case string:
		if !s.allowsText() || s.Values != nil && !s.Values.allowsText(v, effort) {
			return false
		}
	case int64:
		if s.Type != word.Integer && s.Type != word.Number && !s.allowsAnyNumber() || s.Values != nil && !s.allowsInt(v) {
			return false
		}
	case float64:
		if !s.allowsFloat(v) {
			return false
		}
	case bool:
		if !s.allowsPlain(word.Boolean) {
			return false
		}
	case []any:
		if !s.allowsPlain(word.Array) && !s.listPasses() || !s.allowsList(v, effort) {
			return false
		}
	case map[string]any:
		if !s.allowsPlain(word.Object) || !s.allowsObject(v, effort) {
			return false
		}
	default:
		return false
	}
	return s.Values == nil || s.Values.allows(v, effort)
}

// allowsNull checks only types and enums, because no other condition applies to null. Null is in no enum, even if the enum as
// written has it.
func (s *Schema) allowsNull() bool {
	if s.Values != nil && len(s.Values.Enum) > 0 {
		return false
	}
	return s.Nullable || s.Type == "" && !s.IntOrString || s.Type == word.Null && !s.IntOrString
}

// allowsPlain reports whether s allows values of a type that no format or int-or-string applies to.
func (s *Schema) allowsPlain(jsonType string) bool {
	if s.IntOrString {
		return false
	}
	return s.Type == jsonType || s.Type == "" && (s.Values == nil || s.Values.format == "")
}

// allowsText reports whether s allows strings. A format without a type is one of strings.
func (s *Schema) allowsText() bool {
	return s.Type == word.String || s.IntOrString || s.Type == ""
}

// allowsAnyNumber reports whether s allows numbers although its type is not a number type.
func (s *Schema) allowsAnyNumber() bool {
	return s.IntOrString || s.Type == "" && (s.Values == nil || s.Values.format == "")
}

// listPasses reports whether a list is valid as a string with a format.
func (s *Schema) listPasses() bool {
	return (s.Type == word.String || s.Type == "") && !s.IntOrString && s.Values != nil && s.Values.format != ""
}

func (s *Schema) allowsFloat(v float64) bool {
	switch {
	case s.IntOrString:
		if !jsonvalue.IsAlmostWhole(v) {
			return false
		}
	case s.Type == word.Integer:
		if !jsonvalue.IsWhole(v) {
			return false
		}
	case s.Type != word.Number && !s.allowsAnyNumber():
		return false
	}
	w := s.Values
	if w == nil {
		return true
	}
	if w.impossible || !s.fitsFormat(v, math.Abs(v) <= math.MaxInt32) {
		return false
	}
	if w.MultipleOf != nil && validate.MultipleOf("", "", v, *w.MultipleOf) != nil {
		return false
	}
	if w.Maximum != nil && (v > *w.Maximum || w.ExclusiveMaximum && v == *w.Maximum) {
		return false
	}
	return w.Minimum == nil || v > *w.Minimum || !w.ExclusiveMinimum && v == *w.Minimum
}

// allowsInt checks the conditions on a whole number. Bounds are truncated to whole numbers, as in kube-openapi.
func (s *Schema) allowsInt(v int64) bool {
	w := s.Values
	if w.impossible || w.format != "" && !s.fitsFormat(v, v >= math.MinInt32 && v <= math.MaxInt32) {
		return false
	}
	if w.MultipleOf != nil {
		if factor := int64(*w.MultipleOf); factor <= 0 || v%factor != 0 {
			return false
		}
	}
	if w.Maximum != nil {
		if bound := int64(*w.Maximum); v > bound || w.ExclusiveMaximum && v == bound {
			return false
		}
	}
	if w.Minimum != nil {
		if bound := int64(*w.Minimum); v < bound || w.ExclusiveMinimum && v == bound {
			return false
		}
	}
	return true
}

// fitsFormat reports whether a number of the right type has the format. small means that the number fits all formats.
func (s *Schema) fitsFormat(v any, small bool) bool {
	if small || s.Values.format == "" {
		return true
	}
	numberType, format := s.numberType(s.Values.format)
	if format != "int32" && format != "float" {
		return true
	}
	return validate.IsValueValidAgainstRange(v, numberType, format, "", "") == nil
}

// numberType returns the type and format that decide about the range of a number: a number type if it is the only type, and one
// of its formats.
func (s *Schema) numberType(format string) (string, string) {
	switch {
	case s.IntOrString:
	case s.Type == word.Integer && (format == "int32" || format == "int64"), s.Type == word.Number && (format == "float" || format == "double"):
		return s.Type, format
	case s.Type == word.Integer, s.Type == word.Number:
		return s.Type, ""
	}
	return "", ""
}

func (w *Values) allowsText(v string, effort *Effort) bool {
	if !effort.spend(w.textEffort(v)) {
		return false
	}
	if w.MaxLength != nil || w.MinLength != nil {
		n := int64(utf8.RuneCountInString(v))
		if w.MaxLength != nil && n > *w.MaxLength || w.MinLength != nil && n < *w.MinLength {
			return false
		}
	}
	return (w.pattern == nil || w.pattern.Matches(v)) && (w.hasFormat == nil || w.hasFormat(v))
}

// textEffort returns the effort of validating a string.
func (w *Values) textEffort(v string) int64 {
	n := int64(len(v))
	effort := n / charactersEffort
	if w.pattern != nil {
		effort += n * int64(w.pattern.Size) / patternEffort
	}
	if w.hasFormat != nil {
		effort += n
	}
	return effort
}

func (s *Schema) allowsList(v []any, effort *Effort) bool {
	if w := s.Values; w != nil {
		n := int64(len(v))
		if w.UniqueItems && !effort.spend(n*n) {
			return false
		}
		if w.MinItems != nil && n < *w.MinItems || w.MaxItems != nil && n > *w.MaxItems {
			return false
		}
		if w.UniqueItems && validate.UniqueItems("", "", v) != nil {
			return false
		}
	}
	if s.Items != nil {
		for _, item := range v {
			if !s.Items.allows(item, effort) {
				return false
			}
		}
	}
	return true
}

func (s *Schema) allowsObject(v map[string]any, effort *Effort) bool {
	if w := s.Values; w != nil {
		if !effort.spend(int64(len(w.Required))) {
			return false
		}
		n := int64(len(v))
		if w.MinProperties != nil && n < *w.MinProperties || w.MaxProperties != nil && n > *w.MaxProperties {
			return false
		}
		for _, name := range w.Required {
			if _, ok := v[name]; !ok {
				return false
			}
		}
	}
	if len(s.Properties) == 0 && s.Additional == nil && s.Others != OthersForbidden {
		return true
	}
	for name, member := range v {
		property, ok := s.Properties[name]
		switch {
		case ok:
			if !property.allows(member, effort) {
				return false
			}
		case s.Others == OthersForbidden:
			return false
		case s.Additional != nil:
			if !s.Additional.allows(member, effort) {
				return false
			}
		}
	}
	return true
}

// allows checks the conditions that apply to values of all types.
func (w *Values) allows(v any, effort *Effort) bool {
	if len(w.Enum) > 0 && !w.enumerates(v, effort) {
		return false
	}
	for _, branch := range w.AllOf {
		if !branch.allows(v, effort) {
			return false
		}
	}
	if len(w.AnyOf) > 0 && !slices.ContainsFunc(w.AnyOf, func(branch *Schema) bool { return branch.allows(v, effort) }) {
		return false
	}
	if len(w.OneOf) > 0 {
		valid := 0
		for _, branch := range w.OneOf {
			if branch.allows(v, effort) {
				valid++
			}
		}
		if valid != 1 {
			return false
		}
	}
	return w.Not == nil || !w.Not.allows(v, effort)
}

// enumerates reports whether a value is in an enum. If the enum is long, strings are looked up in a map; no alternative of
// another type equals a string.
func (w *Values) enumerates(v any, effort *Effort) bool {
	if text, ok := v.(string); ok && w.texts != nil {
		_, found := w.texts[text]
		return found
	}
	if !effort.spend(int64(len(w.Enum)) / alternativeShare) {
		return false
	}
	return slices.ContainsFunc(w.Enum, func(alternative any) bool { return jsonvalue.IsAlternative(v, alternative) })
}
