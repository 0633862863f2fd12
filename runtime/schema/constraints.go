package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/runtime/constraint"
	"k8s.io/kube-openapi/pkg/validation/spec"
	kjson "sigs.k8s.io/json"
)

// constraintsOf returns the constraints in the struct tags of a field. Invalid tags are ignored here, because registering the
// kind returns an error for them.
func constraintsOf(f jsonField) constraint.Field {
	c, err := constraint.ParseField(f.StructField)
	if err != nil {
		return constraint.Field{}
	}
	return c
}

// taggedDefault returns the default in a field's tags. The result is true if there is a default, and also if the tags have
// constraints, because then the zero value may not be valid.
func taggedDefault(f jsonField) (any, bool) {
	c := constraintsOf(f)
	if c.Default == nil {
		c.Required, c.Immutable = false, false
		return nil, !reflect.ValueOf(c).IsZero() && f.Type.Kind() != reflect.Struct
	}
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(c.Default, &v); err != nil { // it was parsed before
		return nil, false
	}
	return v, true
}

// constrain adds the constraints in a field's tags to its schema. It also lists them at the end of the description, because
// kubectl explain shows only some of them. required is whether the field would be required without tags; the result is whether it
// is.
func constrain(s *spec.Schema, f jsonField, required bool) bool {
	c := constraintsOf(f)
	apply(s, c)
	if words := inWords(c); words != "" {
		if s.Description != "" {
			s.Description += "\n\n"
		}
		first, size := utf8.DecodeRuneInString(words)
		s.Description += string(unicode.ToUpper(first)) + words[size:] + "."
	}
	return (required || c.Required) && c.Default == nil
}

// apply adds constraints to the schema of a value.
func apply(s *spec.Schema, c constraint.Field) {
	s.Minimum, s.ExclusiveMinimum = number(c.Minimum), c.ExclusiveMinimum
	s.Maximum, s.ExclusiveMaximum = number(c.Maximum), c.ExclusiveMaximum
	s.MultipleOf = number(c.MultipleOf)
	s.MinLength, s.MaxLength = c.MinLength, c.MaxLength
	s.MinItems, s.MaxItems, s.UniqueItems = c.MinItems, c.MaxItems, c.UniqueItems
	s.MinProperties, s.MaxProperties = c.MinProperties, c.MaxProperties
	s.Pattern, s.Format = c.Pattern, cmp.Or(c.Format, s.Format)
	if c.Enum != nil {
		s.Enum = c.Enum
	}
	switch {
	case c.Items == nil:
	case s.Items != nil && s.Items.Schema != nil:
		apply(s.Items.Schema, *c.Items)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		apply(s.AdditionalProperties.Schema, *c.Items)
	}
}

func number(n json.Number) *float64 {
	if f, err := n.Float64(); err == nil {
		return &f
	}
	return nil
}

// inWords returns constraints as text: "minimum 1, maximum 10, default 3, immutable". It omits those that kubectl explain shows
// itself: required, and the enumeration of a field.
func inWords(c constraint.Field) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	bound := func(n json.Number, exclusive bool, name, beyond string) {
		switch {
		case n != "" && exclusive:
			add("%s %s", beyond, n)
		case n != "":
			add("%s %s", name, n)
		}
	}
	span := func(low, high *int64, one, many string) {
		unit := func(n int64) string {
			if n == 1 {
				return one
			}
			return many
		}
		switch {
		case low != nil && high != nil && *low == *high:
			add("exactly %d %s", *low, unit(*low))
		case low != nil && high != nil:
			add("%d to %d %s", *low, *high, unit(*high))
		case low != nil:
			add("at least %d %s", *low, unit(*low))
		case high != nil:
			add("at most %d %s", *high, unit(*high))
		}
	}
	bound(c.Minimum, c.ExclusiveMinimum, "minimum", "more than")
	bound(c.Maximum, c.ExclusiveMaximum, "maximum", "less than")
	if c.MultipleOf != "" {
		add("a multiple of %s", c.MultipleOf)
	}
	span(c.MinLength, c.MaxLength, "character", "characters")
	if c.Format != "" {
		add("format %s", c.Format)
	}
	if c.Pattern != "" {
		add("pattern '%s'", c.Pattern)
	}
	span(c.MinItems, c.MaxItems, "item", "items")
	if c.UniqueItems {
		add("no item twice")
	}
	span(c.MinProperties, c.MaxProperties, "entry", "entries")
	if c.Items != nil {
		each := inWords(*c.Items)
		if c.Items.Enum != nil { // kubectl explain shows the enumerations of fields only
			each = strings.TrimPrefix(each+fmt.Sprintf(", one of %v", c.Items.Enum), ", ")
		}
		add("each %s", each)
	}
	if c.Default != nil {
		add("default %s", c.Default)
	}
	if c.Immutable {
		add("immutable")
	}
	return strings.Join(parts, ", ")
}
