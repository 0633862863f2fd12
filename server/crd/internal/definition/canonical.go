package definition

import (
	"bytes"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// Canonicalize brings a valid definition into the one form in which kube-apiserver stores it, in place: JSON in defaults, enums
// and examples is without spaces and sorted by names, and there is no webhook that says nothing. What reads differently but
// means the same is thereby no change of the spec. It is idempotent.
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

// isPlain reports whether a text is surely a whole number or a string in the canonical form.
func isPlain(text []byte) bool {
	const digits = 18 // of any int64
	n := len(text)
	switch {
	case n > 1 && text[0] == '"' && text[n-1] == '"':
		return !slices.ContainsFunc(text[1:n-1], func(c byte) bool { return c < ' ' || c > '~' || bytes.IndexByte([]byte(`"\\<>&`), c) >= 0 })
	case n == 0, n > digits, n > 1 && text[0] == '0':
		return false
	}
	return !slices.ContainsFunc(text, func(c byte) bool { return c < '0' || c > '9' })
}

// canonicalJSON returns JSON in its canonical form, nil for null. What is none stays as it is.
func canonicalJSON(text *apiextensionsv1.JSON) *apiextensionsv1.JSON {
	if text == nil {
		return nil
	}
	if isPlain(text.Raw) { // an enum may have a million of these, and each would take a decoder of its own
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
