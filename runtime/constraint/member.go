package constraint

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
)

// member is a struct field as encoding/json sees it.
type member struct {
	reflect.StructField
	declaring reflect.Type
	at        []int  // index from the outer struct; several steps for a field of an embedded struct
	name      string // in JSON
	omitEmpty bool
	omitZero  bool
	asString  bool // the option ",string" has an effect
}

// memberOf returns the member for a field. inlined means that JSON has the fields of the field's struct instead. ok means that
// JSON has the field at all.
func memberOf(f reflect.StructField) (m member, inlined, ok bool) {
	field, inlined, ok := jsonfield.Parse(f)
	return asMember(field), inlined, ok && (inlined || f.IsExported())
}

func asMember(f jsonfield.Field) member {
	return member{
		StructField: f.Go, declaring: f.Declaring, at: f.At,
		name: f.Name, omitEmpty: f.OmitEmpty, omitZero: f.OmitZero, asString: f.AsString,
	}
}

// membersOf returns the fields that a struct has in JSON. An embedded struct that is not exported but has a name in JSON is left
// out, because nothing can be set in it. refuse may be nil; it is called for fields that JSON does not have but that have tags of
// this package.
func membersOf(t reflect.Type, refuse func(declaring reflect.Type, f reflect.StructField, cause string)) []member {
	others := func(declaring reflect.Type, f reflect.StructField, inlined bool) {
		if refuse != nil {
			refuseTags(declaring, f, inlined, refuse)
		}
	}
	var out []member
	for _, f := range jsonfield.Of(t, others) {
		if !f.Go.IsExported() {
			others(f.Declaring, f.Go, false)
			continue
		}
		out = append(out, asMember(f))
	}
	return out
}

// refuseTags calls refuse for a field that JSON does not have, if it has tags of this package.
func refuseTags(declaring reflect.Type, f reflect.StructField, inlined bool, refuse func(reflect.Type, reflect.StructField, string)) {
	switch first, err := scanTags(f.Tag); {
	case err != nil:
		refuse(declaring, f, err.Error())
	case first == "":
	case inlined:
		refuse(declaring, f, "tag "+first+": the struct is embedded, and its fields are those of the outer one; put tags at the fields, or give the struct a name in its json tag")
	default:
		refuse(declaring, f, "tag "+first+": JSON does not have the field; export it and give it a name in its json tag, or take the tag away")
	}
}

// dereference returns the type that t points to, through any number of pointers. It returns false for nil and for a pointer type
// that leads to no other type.
func dereference(t reflect.Type) (reflect.Type, bool) {
	if t == nil {
		return nil, false
	}
	for range 8 {
		if t.Kind() != reflect.Pointer {
			return t, true
		}
		t = t.Elem()
	}
	return t, false
}

// indirect follows pointers. It returns the zero Value if one of them is nil.
func indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// of returns the member's field of the struct v, or the zero Value if an embedded pointer on the way is nil.
func (m *member) of(v reflect.Value) reflect.Value {
	for i, x := range m.at {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v = v.Elem(); !v.IsValid() {
				return v
			}
		}
		v = v.Field(x)
	}
	return v
}

// make is of, but it allocates embedded structs on the way. It returns the zero Value if that is not possible, as for a pointer
// to an unexported struct.
func (m *member) make(v reflect.Value) reflect.Value {
	for i, x := range m.at {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !v.CanSet() {
					return reflect.Value{}
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v
}

// tagNames returns the tags of this package that apply to one value.
func tagNames() []string {
	return []string{
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minLength", "maxLength", "pattern", "format", "enum",
		"minItems", "maxItems", "uniqueItems", "items", "minProperties", "maxProperties", "additionalProperties",
		"required", "default", "immutable",
	}
}

// scanTags returns the first tag of this package, or "". It returns an error for tags that reflect silently ignores: a tag of
// this package at or after a syntax error, a duplicate, and a tag with wrong upper or lower case. Syntax errors around other tags
// are ignored.
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
		if name == "json" || name == "protobuf" { // most tags are one of these
			continue
		}
		i := slices.IndexFunc(names, func(ours string) bool { return len(ours) == len(name) && strings.EqualFold(ours, name) })
		switch {
		case i < 0:
			if meant := misspelt(name); meant != "" {
				return "", fmt.Errorf("tag %s: there is no such tag; write %s", name, meant)
			}
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

// quoted returns the string literal in double quotes, with the quotes, at the beginning of s, or "".
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
