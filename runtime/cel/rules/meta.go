package rules

import (
	"github.com/keelson-dev/keelson/runtime/structural"
)

// maxName is the maximum length of metadata.name.
const maxName = 253

// withMeta returns the schema of a resource with the fields that rules see of every resource: apiVersion, kind, metadata.name and
// metadata.generateName. Rules see no other field of metadata. There is one exception: a schema that describes all four of these
// fields, with their types, is returned as it is, and rules see all fields of metadata that it describes.
func withMeta(s *structural.Schema) *structural.Schema {
	metadata := s.Properties["metadata"]
	if typeOf(s.Properties["kind"]) == "string" && typeOf(s.Properties["apiVersion"]) == "string" && typeOf(metadata) == "object" &&
		typeOf(metadata.Properties["name"]) == "string" && typeOf(metadata.Properties["generateName"]) == "string" {
		return s
	}
	var names map[string]*structural.Schema
	if metadata != nil {
		names = metadata.Properties
	}
	resource := *s
	resource.Properties = make(map[string]*structural.Schema, len(s.Properties)+3)
	for name, property := range s.Properties {
		resource.Properties[name] = property
	}
	resource.Properties["kind"] = &structural.Schema{Type: "string"}
	resource.Properties["apiVersion"] = &structural.Schema{Type: "string"}
	resource.Properties["metadata"] = &structural.Schema{Type: "object", Properties: map[string]*structural.Schema{
		"name":         nameOf(names["name"], maxName),
		"generateName": nameOf(names["generateName"], maxName-1), // the generated suffix has at least one byte
	}}
	return &resource
}

func typeOf(s *structural.Schema) string {
	if s == nil {
		return ""
	}
	return s.Type
}

// nameOf returns a schema of strings with at most limit characters, or fewer if s has a lower limit.
func nameOf(s *structural.Schema, limit int64) *structural.Schema {
	if s != nil {
		if max := values(s).MaxLength; max != nil {
			limit = min(limit, *max)
		}
	}
	return &structural.Schema{Type: "string", Values: &structural.Values{MaxLength: &limit}}
}

// asSeen returns a copy of the schema in which all embedded resources have the fields that rules see. It returns s itself if
// there are no embedded resources.
func asSeen(s *structural.Schema) *structural.Schema {
	if s == nil {
		return nil
	}
	seen := s
	change := func(set func(*structural.Schema)) {
		if seen == s {
			clone := *s
			seen = &clone
		}
		set(seen)
	}
	if items := asSeen(s.Items); items != s.Items {
		change(func(s *structural.Schema) { s.Items = items })
	}
	if additional := asSeen(s.Additional); additional != s.Additional {
		change(func(s *structural.Schema) { s.Additional = additional })
	}
	var properties map[string]*structural.Schema
	for name, property := range s.Properties {
		if inside := asSeen(property); inside != property {
			if properties == nil {
				properties = make(map[string]*structural.Schema, len(s.Properties))
				for name, property := range s.Properties {
					properties[name] = property
				}
			}
			properties[name] = inside
		}
	}
	if properties != nil {
		change(func(s *structural.Schema) { s.Properties = properties })
	}
	if s.Embedded {
		seen = withMeta(seen)
	}
	return seen
}

// values returns the value constraints of a schema. It returns an empty struct if the schema has none.
func values(s *structural.Schema) *structural.Values {
	if s.Values == nil {
		return &structural.Values{}
	}
	return s.Values
}
