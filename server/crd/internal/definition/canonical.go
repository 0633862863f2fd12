package definition

import (
	"bytes"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// Canonicalize changes a valid definition, in place, to the form in which kube-apiserver stores it. JSON in defaults, enums and
// examples has no spaces and is sorted by names, and an empty webhook is removed. So a definition that differs only in notation
// is no change of the spec. Canonicalize is idempotent.
func Canonicalize(crd *apiextensionsv1.CustomResourceDefinition) {
	if c := crd.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig == nil && c.Webhook.ConversionReviewVersions == nil {
		c.Webhook = nil
	}
	for i := range crd.Spec.Versions {
		canonicalizeSchema(SchemaOf(&crd.Spec.Versions[i]))
	}
}

func canonicalizeSchema(schema *props) {
	if schema == nil {
		return
	}
	schema.Default, schema.Example = canonicalJSON(schema.Default), canonicalJSON(schema.Example)
	for i := range schema.Enum {
		if value := canonicalJSON(&schema.Enum[i]); value != nil {
			schema.Enum[i] = *value
		} else {
			schema.Enum[i].Raw = nil
		}
	}
	if schema.Items != nil {
		canonicalizeSchema(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil {
		canonicalizeSchema(schema.AdditionalProperties.Schema)
	}
	for name, property := range schema.Properties {
		canonicalizeSchema(&property)
		schema.Properties[name] = property
	}
	for _, branches := range [][]props{schema.AllOf, schema.AnyOf, schema.OneOf} {
		for i := range branches {
			canonicalizeSchema(&branches[i])
		}
	}
	canonicalizeSchema(schema.Not)
}

// isPlain reports whether a text is certainly an integer or a string in the canonical form.
func isPlain(text []byte) bool {
	const digits = 18 // any number of 18 digits is an int64
	n := len(text)
	switch {
	case n > 1 && text[0] == '"' && text[n-1] == '"':
		return !slices.ContainsFunc(text[1:n-1], func(c byte) bool { return c < ' ' || c > '~' || bytes.IndexByte([]byte(`"\\<>&`), c) >= 0 })
	case n == 0, n > digits, n > 1 && text[0] == '0':
		return false
	}
	return !slices.ContainsFunc(text, func(c byte) bool { return c < '0' || c > '9' })
}

// canonicalJSON returns JSON in its canonical form, nil for null. Invalid JSON is returned unchanged.
func canonicalJSON(text *apiextensionsv1.JSON) *apiextensionsv1.JSON {
	if text == nil {
		return nil
	}
	if isPlain(text.Raw) { // an enum may have a million of these values, and a decoder for each would be too expensive
		return text
	}
	value, err := decoded(*text)
	if err != nil {
		return text
	}
	if value == nil {
		return nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return &apiextensionsv1.JSON{Raw: raw}
}
