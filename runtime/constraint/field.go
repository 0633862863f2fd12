package constraint

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Field is what the tags of one struct field say, in the words of JSON schema, for whoever publishes it. The zero
// Field says nothing.
type Field struct {
	Required  bool
	Immutable bool
	// Default is JSON; nil: none.
	Default json.RawMessage

	// Bounds of a number; "" is none.
	Minimum, Maximum, MultipleOf       json.Number
	ExclusiveMinimum, ExclusiveMaximum bool

	// Bounds of a text, in characters, and of the number of elements of a list and of entries of a map; nil is none.
	MinLength, MaxLength         *int64
	MinItems, MaxItems           *int64
	MinProperties, MaxProperties *int64

	// Pattern is an RE2 expression that a text has a match of, Format the name of a format; "" is none.
	Pattern, Format string
	// Enum are all values that a text (string) or number (int64, uint64, float32 or float64) may have; nil: any.
	Enum []any
	// UniqueItems says that no element of a list is there twice.
	UniqueItems bool
	// Items says what holds for every element of a list or value of a map; nil: nothing.
	Items *Field
}

// ParseField reads the tags of a struct field. Errors name the tag and the cure, not the field. What only shows in
// the light of other types, such as a default that breaks a rule inside it, is found by [Of].
func ParseField(f reflect.StructField) (Field, error) {
	m, inlined, ok := memberOf(f)
	if !ok || inlined {
		return Field{}, nil
	}
	r, err := parseRule(&m)
	if err != nil || r == nil {
		return Field{}, err
	}
	return r.Field, nil
}

// tagNames are the tags of this package that are about one value.
func tagNames() []string {
	return []string{
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minLength", "maxLength", "pattern", "format", "enum",
		"minItems", "maxItems", "uniqueItems", "items", "minProperties", "maxProperties", "additionalProperties",
		"required", "default", "immutable",
	}
}

// scanTags returns the first of our tags, or "". It refuses what reflect passes over in silence: one of our tags at or
// after a mistake, one that is there twice, and one in other letters. Mistakes around the tags of others are not our
// business.
func scanTags(tag reflect.StructTag) (first string, err error) {
	names := tagNames()
	var seen []string
	for rest := strings.TrimLeft(string(tag), " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		name, after, _ := strings.Cut(rest, ":")
		value := quoted(after)
		if name == "" || strings.ContainsAny(name, " \"") || value == "" {
			if slices.ContainsFunc(names, func(ours string) bool { return strings.Contains(rest, ours) }) {
				return "", fmt.Errorf("tags `%s`: %q is lost, as it does not begin with a tag of the form name:\"value\"; write it so", tag, rest)
			}
			break
		}
		rest = after[len(value):]
		if name == "json" || name == "protobuf" { // nearly all
			continue
		}
		i := slices.IndexFunc(names, func(ours string) bool { return len(ours) == len(name) && strings.EqualFold(ours, name) })
		switch {
		case i < 0:
			continue
		case names[i] != name:
			return "", fmt.Errorf("tag %s: it is written %s", name, names[i])
		case slices.Contains(seen, name):
			return "", fmt.Errorf("tags `%s`: %s is there twice; only the first would count", tag, name)
		}
		if _, err := strconv.Unquote(value); err != nil {
			return "", fmt.Errorf("tags `%s`: the value %s is no string of Go; write a backslash as \\\\", tag, value)
		}
		seen = append(seen, name)
	}
	if len(seen) > 0 {
		first = seen[0]
	}
	return first, nil
}

// quoted returns the text in double quotes, with the quotes, that s begins with, or "".
func quoted(s string) string {
	if !strings.HasPrefix(s, `"`) {
		return ""
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[:i+1]
		}
	}
	return ""
}
