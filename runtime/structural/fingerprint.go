package structural

import (
	"crypto/sha256"
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Fingerprint tells schemas apart. It is comparable; that of two schemas is the same, as far as SHA-256 goes, only if
// [Compile] makes the same of them.
type Fingerprint [sha256.Size]byte

// FingerprintOf returns the fingerprint of a schema. Descriptions, titles, examples and links to documents do not count,
// and neither does the order of properties. A nil schema has one too.
func FingerprintOf(props *apiextensionsv1.JSONSchemaProps) (Fingerprint, error) {
	text, err := json.Marshal(withoutDocs(props))
	if err != nil {
		return Fingerprint{}, err
	}
	return sha256.Sum256(text), nil
}

// withoutDocs copies what counts in a schema. What no schema that compiles has is left as it is.
func withoutDocs(props *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if props == nil {
		return nil
	}
	bare := *props
	bare.Description, bare.Title, bare.Example, bare.ExternalDocs = "", "", nil, nil
	if props.Items != nil {
		bare.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: withoutDocs(props.Items.Schema), JSONSchemas: props.Items.JSONSchemas}
	}
	if others := props.AdditionalProperties; others != nil {
		bare.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: others.Allows, Schema: withoutDocs(others.Schema)}
	}
	if props.Properties != nil {
		bare.Properties = make(map[string]apiextensionsv1.JSONSchemaProps, len(props.Properties))
		for name, property := range props.Properties {
			bare.Properties[name] = *withoutDocs(&property)
		}
	}
	bare.AllOf, bare.AnyOf, bare.OneOf = allWithoutDocs(props.AllOf), allWithoutDocs(props.AnyOf), allWithoutDocs(props.OneOf)
	bare.Not = withoutDocs(props.Not)
	return &bare
}

func allWithoutDocs(props []apiextensionsv1.JSONSchemaProps) []apiextensionsv1.JSONSchemaProps {
	if props == nil {
		return nil
	}
	bare := make([]apiextensionsv1.JSONSchemaProps, len(props))
	for i := range props {
		bare[i] = *withoutDocs(&props[i])
	}
	return bare
}
