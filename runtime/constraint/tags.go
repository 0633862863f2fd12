package constraint

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rule is a Field, compiled for validating values.
type rule struct {
	Field
	checks []check
	def    *filler // nil: no default
	items  *rule   // compiled from Field.Items
}

// check returns nil if a value is valid. v is present. The complaint makes the errors, which is only done if there are any.
type check func(v reflect.Value) complaint

// complaint makes the errors, given the path of the value.
type complaint func(at *field.Path) field.ErrorList

func (r *rule) judges() bool { return r.Required || r.Immutable || len(r.checks) > 0 }

// class is the classification of a Go type for constraints.
type class byte

const (
	opaque  class = iota // has its own JSON, or is written as a string by ",string"
	integer              // signed or unsigned
	float
	text
	boolean
	list
	mapping
	object
)

func (c class) String() string {
	return [...]string{"a value that has its own JSON", "an integer", "a number", "a string", "a boolean", "a list", "a map", "a struct"}[c]
}

func classOf(m *member) class {
	t, ok := dereference(m.Type)
	switch {
	case !ok || isOpaque(t) || m.asString:
		return opaque
	}
	switch t.Kind() {
	case reflect.String:
		return text
	case reflect.Bool:
		return boolean
	case reflect.Float32, reflect.Float64:
		return float
	case reflect.Slice, reflect.Array:
		return list
	case reflect.Map:
		return mapping
	case reflect.Struct:
		return object
	}
	if jsonfield.Stringable(t.Kind()) {
		return integer
	}
	return opaque
}

// tagReader reads the tags of one field.
type tagReader struct {
	m     *member
	typ   reflect.Type // of the value, without pointers
	class class
	rule  *rule
}

// parseRule returns the rule of a field, or nil if it has none.
func parseRule(m *member) (*rule, error) {
	if first, err := scanTags(m.Tag); err != nil || first == "" {
		return nil, err
	}
	t, _ := dereference(m.Type)
	r := &tagReader{m: m, typ: t, class: classOf(m), rule: &rule{}}
	var problems []error
	for _, name := range tagNames() {
		value, ok := m.Tag.Lookup(name)
		if !ok {
			continue
		}
		if err := r.read(name, value); err != nil {
			problems = append(problems, fmt.Errorf("tag %s:%q: %w", name, value, err))
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if err := r.contradiction(); err != nil {
		return nil, err
	}
	if err := r.compile(); err != nil {
		return nil, err
	}
	return r.rule, nil
}

// read reads one tag.
func (r *tagReader) read(name, value string) (err error) {
	out := &r.rule.Field
	switch name {
	case "minimum":
		return r.number(&out.Minimum, value)
	case "maximum":
		return r.number(&out.Maximum, value)
	case "multipleOf":
		if err := r.number(&out.MultipleOf, value); err != nil {
			return err
		}
		if f, err := out.MultipleOf.Float64(); err != nil || f <= 0 {
			return errors.New("write a number above 0")
		}
	case "exclusiveMinimum":
		return r.flag(&out.ExclusiveMinimum, value, integer, float)
	case "exclusiveMaximum":
		return r.flag(&out.ExclusiveMaximum, value, integer, float)
	case "minLength":
		return r.count(&out.MinLength, value, text)
	case "maxLength":
		return r.count(&out.MaxLength, value, text)
	case "minItems":
		return r.count(&out.MinItems, value, list)
	case "maxItems":
		return r.count(&out.MaxItems, value, list)
	case "minProperties":
		return r.count(&out.MinProperties, value, mapping)
	case "maxProperties":
		return r.count(&out.MaxProperties, value, mapping)
	case "pattern":
		if err := r.only(text); err != nil {
			return err
		}
		if _, err := regexp.Compile(value); err != nil || value == "" {
			return fmt.Errorf("it is no RE2 expression (%v); see https://github.com/google/re2/wiki/Syntax", err)
		}
		out.Pattern = value
	case "format":
		return r.format(value)
	case "enum":
		return r.enum(value)
	case "uniqueItems":
		if err := r.flag(&out.UniqueItems, value, list); err != nil {
			return err
		}
		if elem, _ := elementOf(r.typ); !isScalar(elem) {
			return fmt.Errorf("elements are %v; only strings, numbers and booleans can be compared; for structs write listType:\"map\" and listMapKey", elem)
		}
	case "items":
		return r.items(value, list)
	case "additionalProperties":
		return r.items(value, mapping)
	case "required":
		if err := r.flag(&out.Required, value); err != nil {
			return err
		}
		return r.canBeAbsent()
	case "immutable":
		return r.flag(&out.Immutable, value)
	case "default":
		r.rule.def, err = r.filler(value)
		if err == nil {
			out.Default = r.rule.def.json
		}
		return err
	}
	return nil
}

// only returns an error if the field is not of one of the classes.
func (r *tagReader) only(classes ...class) error {
	if slices.Contains(classes, r.class) {
		return nil
	}
	var names []string
	for _, c := range classes {
		names = append(names, c.String())
	}
	if r.m.asString {
		return fmt.Errorf("it is for %s, and the option \",string\" makes the field a string in JSON; take one of the two away", strings.Join(names, " or "))
	}
	cure := "take the tag away, or check the field in the kind's Strategy"
	switch r.class {
	case list:
		cure = "write it inside the tag items if it is for the elements"
	case mapping:
		cure = "write it inside the tag additionalProperties if it is for the values"
	}
	return fmt.Errorf("it is for %s, and the field is %s (%v); %s", strings.Join(names, " or "), r.class, r.m.Type, cure)
}

// number reads a number that fits the field, and stores it in the form of errors and schemas.
func (r *tagReader) number(out *json.Number, value string) error {
	if err := r.only(integer, float); err != nil {
		return err
	}
	var err error
	zero := reflect.Zero(r.typ)
	switch {
	case zero.CanInt():
		var n int64
		n, err = strconv.ParseInt(value, 10, r.typ.Bits())
		*out = json.Number(strconv.FormatInt(n, 10))
	case zero.CanUint():
		var n uint64
		n, err = strconv.ParseUint(value, 10, r.typ.Bits())
		*out = json.Number(strconv.FormatUint(n, 10))
	default:
		if !json.Valid([]byte(value)) {
			return errors.New("write a number, such as 0.5")
		}
		var n float64
		n, err = strconv.ParseFloat(value, r.typ.Bits())
		*out = json.Number(strconv.FormatFloat(n, 'g', -1, r.typ.Bits()))
	}
	if err != nil {
		return fmt.Errorf("it does not fit the field, a %v (%w); write a number that does", r.typ, errors.Unwrap(err))
	}
	return nil
}

// flag reads a tag whose only value is "true". Without classes it is allowed on all fields.
func (r *tagReader) flag(out *bool, value string, classes ...class) error {
	if len(classes) > 0 {
		if err := r.only(classes...); err != nil {
			return err
		}
	}
	if value != "true" {
		return errors.New("write \"true\", or leave the tag out")
	}
	*out = true
	return nil
}

func (r *tagReader) count(out **int64, value string, c class) error {
	if err := r.only(c); err != nil {
		return err
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 {
		return errors.New("write a whole number, 0 or more")
	}
	*out = &n
	return nil
}

// items reads the tags of elements, which have the syntax of a field's tags.
func (r *tagReader) items(value string, c class) error {
	if err := r.only(c); err != nil {
		return err
	}
	elem, err := parseRule(&member{StructField: reflect.StructField{Type: r.typ.Elem(), Tag: reflect.StructTag(value)}})
	switch {
	case err != nil:
		return fmt.Errorf("of every element: %w", err)
	case elem == nil:
		return errors.New("there is no constraint in it; write tags as for a field, such as items:\"maxLength:\\\"63\\\"\"")
	case elem.Required || elem.Immutable || elem.def != nil:
		return errors.New("required, immutable and default are for fields, not for elements")
	}
	r.rule.items, r.rule.Items = elem, &elem.Field
	return nil
}

// enum reads values separated by commas.
func (r *tagReader) enum(value string) error {
	if err := r.only(text, integer, float); err != nil {
		return err
	}
	if value == "" {
		return errors.New("no value is allowed; list the values, separated by commas")
	}
	for one := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(one) != one {
			return fmt.Errorf("there is a space around %q; separate values by commas alone", one)
		}
		var v any = one
		if r.class != text {
			var n json.Number
			if err := r.number(&n, one); err != nil {
				return err
			}
			v = r.numberOf(n)
		}
		if slices.Contains(r.rule.Enum, v) {
			return fmt.Errorf("%q is there twice", one)
		}
		r.rule.Enum = append(r.rule.Enum, v)
	}
	return nil
}

// canBeAbsent returns an error if the field is required but is never absent.
func (r *tagReader) canBeAbsent() error {
	switch r.m.Type.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		return nil
	}
	switch {
	case r.m.omitZero, r.m.omitEmpty && r.class != object && r.m.Type.Kind() != reflect.Array && r.m.Type.Kind() != reflect.Struct, nullWhenZero(r.m.Type):
		return nil
	}
	return fmt.Errorf("a %v is always there, so a client that leaves the field out is not told from one that sends its zero value; make the field a pointer, or add omitempty (omitzero for a struct) to its json tag, and its zero value counts as absent", r.m.Type)
}

// contradiction returns an error for tags that contradict each other.
func (r *tagReader) contradiction() error {
	f := &r.rule.Field
	above := func(min, max *int64) bool { return min != nil && max != nil && *min > *max }
	switch {
	case f.ExclusiveMinimum && f.Minimum == "":
		return errors.New("tag exclusiveMinimum:\"true\": there is no minimum; add the tag minimum")
	case f.ExclusiveMaximum && f.Maximum == "":
		return errors.New("tag exclusiveMaximum:\"true\": there is no maximum; add the tag maximum")
	case f.Required && f.Default != nil:
		return errors.New("tags required and default: a field with a default is never missing; take one of the two away")
	case above(f.MinLength, f.MaxLength):
		return errors.New("tags minLength and maxLength: no text is both; make minLength the smaller one")
	case above(f.MinItems, f.MaxItems):
		return errors.New("tags minItems and maxItems: no list is both; make minItems the smaller one")
	case above(f.MinProperties, f.MaxProperties):
		return errors.New("tags minProperties and maxProperties: no map is both; make minProperties the smaller one")
	case f.Default != nil && r.class == boolean && r.m.Type.Kind() == reflect.Bool && string(f.Default) == "true":
		return errors.New("tag default:\"true\": the field could never be false, as false counts as absent; make it a pointer")
	}
	return nil
}

// format reads the tag format.
func (r *tagReader) format(name string) error {
	if err := r.only(text, integer, float); err != nil {
		return err
	}
	if _, ok := formatCheck(name, r.class); !ok {
		known := map[class][]string{text: textFormats(), integer: {"int32", "int64"}, float: {"float", "double"}}[r.class]
		return fmt.Errorf("there is no such format of %s; the formats are %s", r.class, strings.Join(known, ", "))
	}
	r.rule.Format = name
	return nil
}
