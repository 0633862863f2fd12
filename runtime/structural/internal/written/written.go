// Package written handles schemas as they are written, before they are compiled: the reasons why a schema is not structural,
// errors of its keywords, its published form, and the values and paths in it.
package written

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Deeper reports whether schemas are nested more than depth levels deep.
func Deeper(props *apiextensionsv1.JSONSchemaProps, depth int) bool {
	if depth < 0 {
		return true
	}
	for child := range children(props) {
		if Deeper(child, depth-1) {
			return true
		}
	}
	return false
}

// MaxDepth is the maximum nesting depth of schemas.
const MaxDepth = 500

// Unsupported returns an error if props has a keyword that no structural schema has.
func Unsupported(props *apiextensionsv1.JSONSchemaProps) error {
	var keyword string
	switch {
	case props.ID != "":
		keyword = "id"
	case props.Schema != "":
		keyword = "schema"
	case props.Ref != nil && *props.Ref != "":
		keyword = "$ref"
	case len(props.PatternProperties) > 0:
		keyword = "patternProperties"
	case len(props.Dependencies) > 0:
		keyword = "dependencies"
	case props.AdditionalItems != nil:
		keyword = "additionalItems"
	case len(props.Definitions) > 0:
		keyword = "definitions"
	default:
		return nil
	}
	return fmt.Errorf("OpenAPIV3Schema '%s' is not supported", keyword)
}

// Decoded returns the value of a JSON text. It returns nil for null and for an absent text.
func Decoded(text *apiextensionsv1.JSON) (any, error) {
	if text == nil || len(text.Raw) == 0 || bytes.Equal(text.Raw, []byte("null")) {
		return nil, nil
	}
	var value any
	if err := utiljson.Unmarshal(text.Raw, &value); err != nil {
		return nil, err
	}
	return value, nil
}

// AllDecoded returns the values of JSON texts, as Decoded does. It decodes them together: an enum may have a million values, and
// a decoder for each of them would take much more memory than the values.
func AllDecoded(texts []apiextensionsv1.JSON) (values []any, err error) {
	if len(texts) == 0 {
		return nil, nil
	}
	all := []byte{'['}
	for i := range texts {
		if len(texts[i].Raw) == 0 {
			all = append(all, "null,"...)
			continue
		}
		if !json.Valid(texts[i].Raw) {
			_, err := Decoded(&texts[i])
			return nil, err
		}
		all = append(append(all, texts[i].Raw...), ',')
	}
	all[len(all)-1] = ']'
	if err := utiljson.Unmarshal(all, &values); err != nil {
		return nil, err
	}
	return values, nil
}

// children returns the schemas directly inside a schema; those of maps are sorted by name.
func children(props *apiextensionsv1.JSONSchemaProps) iter.Seq[*apiextensionsv1.JSONSchemaProps] {
	return func(yield func(*apiextensionsv1.JSONSchemaProps) bool) {
		var all []*apiextensionsv1.JSONSchemaProps
		if props.Items != nil {
			all = append(all, props.Items.Schema)
			all = appendAll(all, props.Items.JSONSchemas)
		}
		all = appendAll(all, props.AllOf)
		all = appendAll(all, props.AnyOf)
		all = appendAll(all, props.OneOf)
		all = append(all, props.Not)
		all = appendMap(all, props.Properties)
		all = append(all, additionalOf(props))
		all = appendMap(all, props.PatternProperties)
		if props.AdditionalItems != nil {
			all = append(all, props.AdditionalItems.Schema)
		}
		all = appendMap(all, props.Definitions)
		for _, name := range slices.Sorted(maps.Keys(props.Dependencies)) {
			all = append(all, props.Dependencies[name].Schema)
		}
		for _, child := range all {
			if child != nil && !yield(child) {
				return
			}
		}
	}
}

func appendAll(all []*apiextensionsv1.JSONSchemaProps, more []apiextensionsv1.JSONSchemaProps) []*apiextensionsv1.JSONSchemaProps {
	for i := range more {
		all = append(all, &more[i])
	}
	return all
}

func appendMap(all []*apiextensionsv1.JSONSchemaProps, more map[string]apiextensionsv1.JSONSchemaProps) []*apiextensionsv1.JSONSchemaProps {
	for _, name := range slices.Sorted(maps.Keys(more)) {
		child := more[name]
		all = append(all, &child)
	}
	return all
}

// nodes returns a schema and all schemas inside it, each before those inside it.
func nodes(props *apiextensionsv1.JSONSchemaProps) iter.Seq[*apiextensionsv1.JSONSchemaProps] {
	return func(yield func(*apiextensionsv1.JSONSchemaProps) bool) { walk(props, yield) }
}

func walk(props *apiextensionsv1.JSONSchemaProps, yield func(*apiextensionsv1.JSONSchemaProps) bool) bool {
	if props == nil {
		return true
	}
	if !yield(props) {
		return false
	}
	for child := range children(props) {
		if !walk(child, yield) {
			return false
		}
	}
	return true
}

func itemsOf(props *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if props.Items == nil {
		return nil
	}
	return props.Items.Schema
}

func additionalOf(props *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if props.AdditionalProperties == nil {
		return nil
	}
	return props.AdditionalProperties.Schema
}
