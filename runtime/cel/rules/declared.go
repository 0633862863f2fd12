package rules

import (
	"slices"

	celgo "github.com/google/cel-go/cel"
	"github.com/keelson-dev/keelson/runtime/cel"
	"github.com/keelson-dev/keelson/runtime/structural"
)

// declare returns the type of the values of a schema, nil if expressions cannot see them: their type is not specified, or the
// type of their elements or additional members is not. resource means that the values are resources: the object itself, or an
// embedded one.
func declare(s *structural.Schema, resource bool) *cel.DeclType {
	if s == nil {
		return nil
	}
	if s.IntOrString {
		t := cel.Dyn()
		t.MaxElements = maxText(s)
		return t
	}
	if resource {
		s = withMeta(s)
	}
	switch s.Type {
	case "array":
		return declareList(s)
	case "object":
		if s.Others == structural.OthersDescribed && s.Additional != nil {
			return declareMap(s)
		}
		return declareObject(s)
	case "string":
		return declareText(s)
	case "boolean":
		return cel.Bool()
	case "number":
		return cel.Double()
	case "integer":
		return cel.Int()
	}
	return nil
}

func declareList(s *structural.Schema) *cel.DeclType {
	if s.Items == nil {
		return nil
	}
	elem := declare(s.Items, s.Items.Embedded)
	if elem == nil {
		return nil
	}
	limit := (cel.MaxRequestSize - 2) / (elem.MinSize + 1) // with brackets around the list, and commas between the elements
	if max := values(s).MaxItems; max != nil {
		limit = atLeastZero(*max)
	}
	return cel.List(elem, limit)
}

func declareMap(s *structural.Schema) *cel.DeclType {
	elem := declare(s.Additional, s.Additional.Embedded)
	if elem == nil {
		return nil
	}
	const name = 6 // at least: two quotes and two bytes, a colon and a comma
	limit := (cel.MaxRequestSize - 2) / (elem.MinSize + name)
	if max := values(s).MaxProperties; max != nil {
		limit = atLeastZero(*max)
	}
	return cel.Map(cel.String(0), elem, limit)
}

// declareObject leaves out fields that rules cannot see, and fields whose names cannot be written. A required field counts for
// the minimum size, unless it has a default.
func declareObject(s *structural.Schema) *cel.DeclType {
	fields := make(map[string]*cel.DeclField, len(s.Properties))
	required := values(s).Required
	size := int64(2)
	for name, property := range s.Properties {
		t := declare(property, property.Embedded)
		if t == nil {
			continue
		}
		must := slices.Contains(required, name)
		if escaped, ok := cel.Escape(name); ok {
			fields[escaped] = &cel.DeclField{Name: escaped, Type: t, Required: must}
		}
		if must && property.Default == nil {
			const around = 4 // two quotes, a colon and a comma
			size += int64(len(name)) + t.MinSize + around
		}
	}
	t := cel.Object("", fields)
	t.MinSize = size
	return t
}

func declareText(s *structural.Schema) *cel.DeclType {
	switch values(s).Format {
	case "byte":
		limit := int64(unboundedText)
		if max := values(s).MaxLength; max != nil {
			limit = atLeastZero(*max) // length of the base64, which is ASCII only
		}
		return cel.ScalarOf(celgo.BytesType, cel.MinStringSize, limit)
	case "duration":
		return cel.ScalarOf(celgo.DurationType, cel.MinDurationSize, cel.MaxDurationSize)
	case "date":
		return cel.ScalarOf(celgo.TimestampType, cel.DateSize, cel.DateSize)
	case "date-time":
		return cel.ScalarOf(celgo.TimestampType, cel.MinDateTimeSize, cel.MaxDateTimeSize)
	}
	if enum := values(s).Enum; values(s).MaxLength == nil && len(enum) > 0 {
		longest := 0
		for _, alternative := range enum {
			if text, ok := alternative.(string); ok {
				longest = max(longest, len(text))
			}
		}
		return cel.String(int64(longest))
	}
	return cel.String(maxText(s))
}

// unboundedText is the number of bytes of a string that fills a request, without its quotes.
const unboundedText = cel.MaxRequestSize - 2

// maxText returns the maximum number of bytes of a string. Schemas limit the number of characters, which have up to four bytes.
func maxText(s *structural.Schema) int64 {
	if max := values(s).MaxLength; max != nil {
		return atLeastZero(*max) * 4
	}
	return unboundedText
}

func atLeastZero(n int64) int64 { return max(n, 0) }
