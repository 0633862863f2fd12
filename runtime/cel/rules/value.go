package rules

import (
	"fmt"
	"reflect"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/keelson-dev/keelson/runtime/structural"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// view returns a value as rules see it. Nothing is copied: members and elements are read when a rule reads them. A value that
// does not fit the schema becomes an error, which ends the evaluation of a rule that uses it.
func view(value any, s *structural.Schema, m *meter) ref.Val {
	if value == nil {
		if s.Nullable {
			return types.NullValue
		}
		return types.NewErr("invalid data, got null for schema with nullable=false")
	}
	if s.IntOrString {
		switch v := value.(type) {
		case string:
			return types.String(v)
		case int64:
			return types.Int(v)
		}
		return types.NewErr("invalid data, expected XIntOrString value to be either a string or integer")
	}
	switch s.Type {
	case "object":
		if v, ok := value.(map[string]any); ok {
			return &object{v, s, m}
		}
		return types.NewErr("invalid data, expected a map for the provided schema with type=object")
	case "array":
		return viewList(value, s, m)
	case "string":
		if v, ok := value.(string); ok {
			return viewText(v, s, m)
		}
		return types.NewErr("invalid data, expected string, got %T", value)
	case "number":
		switch v := value.(type) {
		case int64:
			return types.Double(v)
		case float64:
			return types.Double(v)
		}
		return types.NewErr("invalid data, expected float, got %T", value)
	case "integer":
		if v, ok := value.(int64); ok {
			return types.Int(v)
		}
		return types.NewErr("invalid data, expected int, got %T", value)
	case "boolean":
		if v, ok := value.(bool); ok {
			return types.Bool(v)
		}
		return types.NewErr("invalid data, expected bool, got %T", value)
	}
	if s.PreserveUnknown {
		return &unknown{value, m}
	}
	return types.NewErr("invalid type, expected object, array, number, integer, boolean or string, or no type with "+
		"x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got %s", s.Type)
}

func viewList(value any, s *structural.Schema, m *meter) ref.Val {
	elements, ok := value.([]any)
	if !ok {
		return types.NewErr("invalid data, expected an array for the provided schema with type=array")
	}
	if s.Items == nil {
		return types.NewErr("invalid array type, expected Items with a non-empty Schema")
	}
	switch s.ListType {
	case "", "atomic":
		return &list{elements, s.Items, m}
	case "set":
		return &setList{list{elements, s.Items, m}}
	case "map":
		return &mapList{list{elements, s.Items, m}, s.ListMapKeys}
	}
	return types.NewErr("invalid x-kubernetes-list-type, expected 'map', 'set' or 'atomic' but got %s", s.ListType)
}

// readToParse is the cost of parsing a string, in plain reads of the string.
const readToParse = 8

// viewText returns a string as a value of the CEL type of its format, if the format has one.
func viewText(text string, s *structural.Schema, m *meter) ref.Val {
	if s.Values == nil {
		return types.String(text)
	}
	switch s.Values.Format {
	case "duration", "date", "date-time":
		m.read(text, readToQuote) // a long text is invalid, and the error repeats the text several times
	case "byte":
		m.read(text, readToParse)
	}
	switch s.Values.Format {
	case "duration":
		d, err := strfmt.ParseDuration(text)
		if err != nil {
			return types.NewErr("Invalid duration %s: %v", text, err)
		}
		return types.Duration{Duration: d}
	case "date":
		d, err := time.Parse(strfmt.RFC3339FullDate, text)
		if err != nil {
			return types.NewErr("Invalid date formatted string %s: %v", text, err)
		}
		return types.Timestamp{Time: d}
	case "date-time":
		d, err := strfmt.ParseDateTime(text)
		if err != nil {
			return types.NewErr("Invalid date-time formatted string %s: %v", text, err)
		}
		return types.Timestamp{Time: time.Time(d)}
	case "byte":
		var b strfmt.Base64
		if err := b.UnmarshalText([]byte(text)); err != nil {
			return types.NewErr("Invalid byte formatted string %s: %v", text, err)
		}
		return types.Bytes(b)
	}
	return types.String(text)
}

// unknown is a value that the schema does not describe. Rules cannot name it, but can compare objects that have it.
type unknown struct {
	value any
	m     *meter
}

const unknownConversion = "type conversion to '%s' not supported for values preserved by x-kubernetes-preserve-unknown-fields"

// ConvertToNative implements ref.Val.
func (u *unknown) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf(unknownConversion, t)
}

// ConvertToType implements ref.Val.
func (u *unknown) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr(unknownConversion, t.TypeName())
}

// Equal implements ref.Val.
func (u *unknown) Equal(other ref.Val) ref.Val {
	return types.Bool(same(u.value, other.Value(), u.m))
}

// Type implements ref.Val.
func (u *unknown) Type() ref.Type { return types.UnknownType }

// Value implements ref.Val.
func (u *unknown) Value() any { return u.value }
