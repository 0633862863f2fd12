package schema

import (
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

const refPrefixV2 = "#/definitions/"

// V2 returns definitions in the form of OpenAPI v2, which knows neither oneOf, anyOf and not, nor nullable: what
// they say is left out, but for a value that may be a string or a number, which becomes a string as in every
// Kubernetes API. References change their prefix and leave allOf, and there are no defaults: kube-apiserver says none in this
// form, which clients that know them do not ask for. A kind that may have any fields is an object of which
// nothing else is said, as kube-apiserver has it: of clients that validate by this form some would take those that are
// named for all there are. The argument is not changed.
func V2(definitions map[string]spec.Schema) map[string]spec.Schema {
	out := make(map[string]spec.Schema, len(definitions))
	for name, s := range definitions {
		if kinds, ok := s.Extensions[extensionKinds]; ok && s.Extensions[extensionPreserveUnknown] == true {
			s = described(typed("object", ""), s.Description)
			s.Extensions = withExtension(nil, extensionKinds, kinds)
		}
		out[name] = downConvert(s)
	}
	return out
}

func downConvert(s spec.Schema) spec.Schema {
	s.Default = nil
	if len(s.OneOf) > 0 && len(s.Type) == 0 {
		s.Type = commonType(s.OneOf)
	}
	s.OneOf, s.AnyOf, s.Not, s.Nullable = nil, nil, nil, false
	if len(s.AllOf) == 1 && s.AllOf[0].Ref.String() != "" && s.Ref.String() == "" {
		s.Ref, s.AllOf = s.AllOf[0].Ref, nil
	}
	if name, ok := strings.CutPrefix(s.Ref.String(), RefPrefix); ok {
		s.Ref, _ = spec.NewRef(refPrefixV2 + name) // it was a reference before
	}
	s.AllOf = downConvertAll(s.AllOf)
	if s.Properties != nil {
		properties := make(map[string]spec.Schema, len(s.Properties))
		for name, p := range s.Properties {
			properties[name] = downConvert(p)
		}
		s.Properties = properties
	}
	if s.Items != nil {
		s.Items = &spec.SchemaOrArray{Schema: downConvertPointer(s.Items.Schema), Schemas: downConvertAll(s.Items.Schemas)}
	}
	if s.AdditionalProperties != nil {
		s.AdditionalProperties = &spec.SchemaOrBool{
			Allows: s.AdditionalProperties.Allows, Schema: downConvertPointer(s.AdditionalProperties.Schema),
		}
	}
	return s
}

func downConvertPointer(s *spec.Schema) *spec.Schema {
	if s == nil {
		return nil
	}
	out := downConvert(*s)
	return &out
}

func downConvertAll(list []spec.Schema) []spec.Schema {
	if list == nil {
		return nil
	}
	out := make([]spec.Schema, len(list))
	for i, s := range list {
		out[i] = downConvert(s)
	}
	return out
}

// commonType is the type that stands for several: a string if that is one of them, else none.
func commonType(oneOf []spec.Schema) spec.StringOrArray {
	for _, s := range oneOf {
		if s.Type.Contains("string") {
			return spec.StringOrArray{"string"}
		}
	}
	return nil
}
