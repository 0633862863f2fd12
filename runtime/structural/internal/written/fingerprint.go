package written

import (
	"crypto/sha256"
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Fingerprint returns the SHA-256 sum of a schema without descriptions, titles, examples, links to documents and the order of
// properties.
func Fingerprint(props *apiextensionsv1.JSONSchemaProps) ([sha256.Size]byte, error) {
	text, err := json.Marshal(withoutDocs(props))
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(text), nil
}

// withoutDocs returns a copy of a schema without its documentation. It does not change keywords that no schema that compiles has.
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
