package constraint

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
)

// member is a struct field as encoding/json sees it, of which rules speak.
type member struct {
	reflect.StructField
	declaring reflect.Type
	at        []int  // index from the outer struct; several steps for a field of an embedded struct
	name      string // in JSON
	omitEmpty bool
	omitZero  bool
	asString  bool // the option ",string" has an effect
}

// memberOf is the member that a field is. The second result says that JSON has the fields of its struct instead, and the
// third that it has the field at all.
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

// membersOf returns the fields that a struct has in JSON. An embedded struct that is not exported and has a name in JSON
// is left out: nothing can be set in it. refuse, unless it is nil, is called for fields that are none of them and are
// constrained all the same.
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

// refuseTags refuses our tags at what is no field in JSON.
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

// dereference returns the type that t points to, however often, and false for nil and for a pointer type that leads
// to no other.
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

// indirect follows pointers; it returns the zero Value where one is nil.
func indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// field returns the field of a struct, or the zero Value when an embedded pointer on the way is nil.
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

// make is of, but it makes the embedded structs on the way. The zero Value is returned where that cannot be done,
// as for a pointer to an unexported struct.
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
