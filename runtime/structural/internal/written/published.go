package written

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// OpenAPI returns the published form of a schema. The result shares only numbers and rules with props.
func OpenAPI(props *apiextensionsv1.JSONSchemaProps) (*spec.Schema, error) {
	return openAPI(props, 0)
}

func openAPI(props *apiextensionsv1.JSONSchemaProps, depth int) (*spec.Schema, error) {
	if props == nil {
		return nil, nil
	}
	if depth > MaxDepth {
		return nil, fmt.Errorf("schemas cannot be nested more than %d deep", MaxDepth)
	}
	s := &spec.Schema{SchemaProps: spec.SchemaProps{
		Description: props.Description, Title: props.Title, Nullable: props.Nullable, Format: props.Format,
		Maximum: props.Maximum, ExclusiveMaximum: props.ExclusiveMaximum, Minimum: props.Minimum, ExclusiveMinimum: props.ExclusiveMinimum,
		MaxLength: props.MaxLength, MinLength: props.MinLength, Pattern: props.Pattern, MaxItems: props.MaxItems, MinItems: props.MinItems,
		UniqueItems: props.UniqueItems, MultipleOf: props.MultipleOf, MaxProperties: props.MaxProperties, MinProperties: props.MinProperties,
		Required: slices.Clone(props.Required),
	}}
	if props.Type != "" {
		s.Type = spec.StringOrArray{props.Type}
	}
	if docs := props.ExternalDocs; docs != nil {
		s.ExternalDocs = &spec.ExternalDocumentation{Description: docs.Description, URL: docs.URL}
	}
	if err := openAPIValues(s, props); err != nil {
		return nil, err
	}
	openAPIExtensions(s, props)
	if err := openAPIParts(s, props, depth); err != nil {
		return nil, err
	}
	return s, nil
}

// openAPIValues adds the values in a schema.
func openAPIValues(s *spec.Schema, props *apiextensionsv1.JSONSchemaProps) (err error) {
	if s.Default, err = Decoded(props.Default); err != nil {
		return err
	}
	if s.Example, err = Decoded(props.Example); err != nil {
		return err
	}
	for i := range props.Enum {
		value, err := Decoded(&props.Enum[i])
		if err != nil {
			return err
		}
		s.Enum = append(s.Enum, value)
	}
	return nil
}

func openAPIExtensions(s *spec.Schema, props *apiextensionsv1.JSONSchemaProps) {
	if props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields {
		s.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	}
	if props.XEmbeddedResource {
		s.AddExtension("x-kubernetes-embedded-resource", true)
	}
	if props.XIntOrString {
		s.AddExtension("x-kubernetes-int-or-string", true)
	}
	if len(props.XListMapKeys) > 0 {
		s.AddExtension("x-kubernetes-list-map-keys", slices.Clone(props.XListMapKeys))
	}
	if props.XListType != nil {
		s.AddExtension("x-kubernetes-list-type", *props.XListType)
	}
	if props.XMapType != nil {
		s.AddExtension("x-kubernetes-map-type", *props.XMapType)
	}
	if len(props.XValidations) > 0 {
		s.AddExtension("x-kubernetes-validations", props.XValidations)
	}
}

// openAPIParts adds the schemas inside a schema.
func openAPIParts(s *spec.Schema, props *apiextensionsv1.JSONSchemaProps, depth int) (err error) {
	if items := itemsOf(props); items != nil {
		s.Items = &spec.SchemaOrArray{}
		if s.Items.Schema, err = openAPI(items, depth+1); err != nil {
			return err
		}
	}
	if len(props.Properties) > 0 {
		s.Properties = make(map[string]spec.Schema, len(props.Properties))
		for name, property := range props.Properties {
			published, err := openAPI(&property, depth+1)
			if err != nil {
				return err
			}
			s.Properties[name] = *published
		}
	}
	if others := props.AdditionalProperties; others != nil {
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: others.Allows || others.Schema != nil}
		if s.AdditionalProperties.Schema, err = openAPI(others.Schema, depth+1); err != nil {
			return err
		}
	}
	for _, branches := range []struct {
		from []apiextensionsv1.JSONSchemaProps
		to   *[]spec.Schema
	}{{props.AllOf, &s.AllOf}, {props.AnyOf, &s.AnyOf}, {props.OneOf, &s.OneOf}} {
		for i := range branches.from {
			branch, err := openAPI(&branches.from[i], depth+1)
			if err != nil {
				return err
			}
			*branches.to = append(*branches.to, *branch)
		}
	}
	s.Not, err = openAPI(props.Not, depth+1)
	return err
}
