package schema

import (
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

const refPrefixV2 = "#/definitions/"

// V2 converts definitions to the form of OpenAPI v2, which does not have the keywords oneOf, anyOf, not and nullable. These are
// left out, except that a value that may be a string or a number becomes a string, as in every Kubernetes API. References get the
// prefix of OpenAPI v2 and are not wrapped in allOf. Defaults are left out, because kube-apiserver has none in this form. A kind
// that may have any fields becomes an object without properties, as in kube-apiserver, because some clients that validate by this
// form would reject fields that are not named. The argument is not changed.
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
		s.Ref, _ = spec.NewRef(refPrefixV2 + name) // it was a valid reference before
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

// commonType returns the one type that replaces several: string if it is among them, or else none.
func commonType(oneOf []spec.Schema) spec.StringOrArray {
	for _, s := range oneOf {
		if s.Type.Contains("string") {
			return spec.StringOrArray{"string"}
		}
	}
	return nil
}
