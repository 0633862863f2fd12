package written

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// StructuralErrors returns the reasons why a schema is not structural, sorted.
func StructuralErrors(path *field.Path, props *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	errs := structureErrors(path, props, atRoot)
	errs = append(errs, completenessOfValues(path, path, props, props)...)
	texts := make(map[*field.Error]string, len(errs))
	for _, err := range errs {
		texts[err] = err.Error()
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return cmp.Compare(texts[a], texts[b]) })
	return errs
}

// level is the position of a schema in the structure. It is the text of the error of a missing type.
type level string

const (
	atRoot  level = "must not be empty at the root"
	inItems level = "must not be empty for specified array items"
	inField level = "must not be empty for specified object fields"
)

// structureErrors checks a schema of the structure and the schemas inside it.
func structureErrors(path *field.Path, props *apiextensionsv1.JSONSchemaProps, at level) field.ErrorList {
	if props == nil {
		return nil
	}
	var errs field.ErrorList
	items, additional := itemsOf(props), additionalOf(props)
	if props.Type == word.Array && items == nil {
		errs = append(errs, field.Required(path.Child("items"), "must be specified"))
	}
	errs = append(errs, structureErrors(path.Child("items"), items, inItems)...)
	for _, name := range slices.Sorted(maps.Keys(props.Properties)) {
		property := props.Properties[name]
		errs = append(errs, structureErrors(path.Child("properties").Key(name), &property, inField)...)
	}
	if props.AdditionalProperties != nil && at == atRoot {
		errs = append(errs, field.Forbidden(path.Child("additionalProperties"), "must not be used at the root"))
	}
	errs = append(errs, structureErrors(path.Child("additionalProperties"), additional, inField)...)
	preserve := props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields
	if props.XIntOrString && preserve {
		errs = append(errs, field.Invalid(path.Child("x-kubernetes-preserve-unknown-fields"), true, "must be false if x-kubernetes-int-or-string is true"))
	}
	if props.XIntOrString && props.XEmbeddedResource {
		errs = append(errs, field.Invalid(path.Child("x-kubernetes-embedded-resource"), true, "must be false if x-kubernetes-int-or-string is true"))
	}
	anyOf, firstAllOf := isIntOrString(props.AnyOf), len(props.AllOf) > 0 && isIntOrString(props.AllOf[0].AnyOf)
	errs = append(errs, valueErrors(path, props, anyOf, firstAllOf)...)
	errs = append(errs, typeErrors(path, props, at, preserve)...)
	errs = append(errs, metadataErrors(path, props, at)...)
	if props.XEmbeddedResource && !preserve && len(props.Properties) == 0 {
		errs = append(errs, field.Required(path.Child("properties"),
			"must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"))
	}
	return errs
}

// typeErrors checks the type, which is required almost everywhere.
func typeErrors(path *field.Path, props *apiextensionsv1.JSONSchemaProps, at level, preserve bool) field.ErrorList {
	var errs field.ErrorList
	const embedded = "must be object if x-kubernetes-embedded-resource is true"
	switch {
	case props.XEmbeddedResource && props.Type == "":
		errs = append(errs, field.Required(path.Child("type"), embedded))
	case props.XEmbeddedResource && props.Type != word.Object:
		errs = append(errs, field.Invalid(path.Child("type"), props.Type, embedded))
	case props.Type == "" && !props.XIntOrString && !preserve:
		errs = append(errs, field.Required(path.Child("type"), string(at)))
	}
	if props.XEmbeddedResource && props.AdditionalProperties != nil {
		errs = append(errs, field.Forbidden(path.Child("additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set"))
	}
	if at == atRoot && props.Type != "" && props.Type != word.Object {
		errs = append(errs, field.Invalid(path.Child("type"), props.Type, "must be object at the root"))
	}
	return errs
}

// metadataErrors checks the schemas of apiVersion, kind and metadata, which may have only a few keywords.
func metadataErrors(path *field.Path, props *apiextensionsv1.JSONSchemaProps, at level) field.ErrorList {
	var errs field.ErrorList
	resource := at == atRoot || props.XEmbeddedResource
	for _, name := range []string{word.Kind, word.APIVersion} {
		if property, ok := props.Properties[name]; ok && resource && property.Type != word.String {
			errs = append(errs, field.Invalid(path.Child("properties").Key(name).Child("type"), property.Type, "must be string"))
		}
	}
	meta, ok := props.Properties[word.Metadata]
	if !ok {
		return errs
	}
	path = path.Child("properties").Key(word.Metadata)
	if resource && meta.Type != word.Object {
		errs = append(errs, field.Invalid(path.Child("type"), meta.Type, "must be object"))
	}
	if at == atRoot && !namesOnly(meta) {
		errs = append(errs, field.Forbidden(path, "must not specify anything other than name and generateName, but metadata is implicitly specified"))
	}
	return errs
}

// namesOnly reports whether a schema of metadata specifies at most name and generateName. Its type and default are checked
// elsewhere.
func namesOnly(meta apiextensionsv1.JSONSchemaProps) bool {
	for name := range meta.Properties {
		if name != "name" && name != "generateName" {
			return false
		}
	}
	meta.Properties, meta.Type, meta.Default = nil, "", nil
	return isBlank(meta)
}

// isBlank reports whether a schema has no keywords.
func isBlank(props apiextensionsv1.JSONSchemaProps) bool {
	props.Enum, props.AllOf, props.AnyOf, props.OneOf = none(props.Enum), none(props.AllOf), none(props.AnyOf), none(props.OneOf)
	if value, err := Decoded(props.Example); err == nil && value == nil {
		props.Example = nil
	}
	return reflect.ValueOf(props).IsZero()
}

// none returns nil for an empty list.
func none[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// isIntOrString reports whether anyOf has the two alternatives of an int-or-string, in which types are allowed.
func isIntOrString(anyOf []apiextensionsv1.JSONSchemaProps) bool {
	if len(anyOf) != 2 || anyOf[0].Type != word.Integer || anyOf[1].Type != word.String {
		return false
	}
	for _, branch := range anyOf {
		branch.Type = ""
		if branch.AdditionalProperties != nil && !branch.AdditionalProperties.Allows && branch.AdditionalProperties.Schema == nil {
			branch.AdditionalProperties = nil // in a branch, false has no effect
		}
		if !isBlank(branch) {
			return false
		}
	}
	return true
}

// valueErrors checks the conditions on values of a schema. anyOf means that its anyOf is that of an int-or-string, firstAllOf
// that the anyOf in the first of its allOf is. Those are not checked.
func valueErrors(path *field.Path, props *apiextensionsv1.JSONSchemaProps, anyOf, firstAllOf bool) field.ErrorList {
	var errs field.ErrorList
	if !anyOf {
		for i := range props.AnyOf {
			errs = append(errs, nestedErrors(path.Child("anyOf").Index(i), &props.AnyOf[i], false)...)
		}
	}
	for i := range props.AllOf {
		errs = append(errs, nestedErrors(path.Child("allOf").Index(i), &props.AllOf[i], firstAllOf && i == 0)...)
	}
	for i := range props.OneOf {
		errs = append(errs, nestedErrors(path.Child("oneOf").Index(i), &props.OneOf[i], false)...)
	}
	errs = append(errs, nestedErrors(path.Child("not"), props.Not, false)...)
	if props.Pattern != "" {
		if _, err := regexp.Compile(props.Pattern); err != nil {
			errs = append(errs, field.Invalid(path.Child("pattern"), props.Pattern, fmt.Sprintf("must be a valid regular expression, but isn't: %v", err)))
		}
	}
	return errs
}

// nestedErrors checks a schema inside allOf, anyOf, oneOf or not, and the schemas inside it. They must not have keywords of the
// structure.
func nestedErrors(path *field.Path, props *apiextensionsv1.JSONSchemaProps, anyOf bool) field.ErrorList {
	if props == nil {
		return nil
	}
	errs := valueErrors(path, props, anyOf, false)
	errs = append(errs, nestedErrors(path.Child("items"), itemsOf(props), false)...)
	for _, name := range slices.Sorted(maps.Keys(props.Properties)) {
		property := props.Properties[name]
		errs = append(errs, nestedErrors(path.Child("properties").Key(name), &property, false)...)
	}
	const empty, undefined, off = "must be empty to be structural", "must be undefined to be structural", "must be false to be structural"
	value, _ := Decoded(props.Default) // the schema has compiled, so it decodes
	for _, forbidden := range []struct {
		found  bool
		word   string
		detail string
	}{
		{props.Type != "", "type", empty},
		{additionalOf(props) != nil || props.AdditionalProperties != nil && props.AdditionalProperties.Allows, "additionalProperties", undefined},
		{value != nil, "default", undefined},
		{props.Title != "", "title", empty},
		{props.Description != "", "description", empty},
		{props.Nullable, "nullable", off},
		{props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields, "x-kubernetes-preserve-unknown-fields", off},
		{props.XEmbeddedResource, "x-kubernetes-embedded-resource", off},
		{props.XIntOrString, "x-kubernetes-int-or-string", off},
		{len(props.XListMapKeys) > 0, "x-kubernetes-list-map-keys", empty},
		{props.XListType != nil, "x-kubernetes-list-type", undefined},
		{props.XMapType != nil, "x-kubernetes-map-type", undefined},
		{len(props.XValidations) > 0, "x-kubernetes-validations", empty},
	} {
		if forbidden.found {
			errs = append(errs, field.Forbidden(path.Child(forbidden.word), forbidden.detail))
		}
	}
	if _, ok := props.Properties[word.Metadata]; ok {
		errs = append(errs, field.Forbidden(path.Child("properties").Key(word.Metadata), "must not be specified in a nested context"))
	}
	return errs
}

// completenessOfValues returns an error for each part that the conditions in values are about and that structure does not
// specify. path is the path of structure, by the path of values.
func completenessOfValues(path, by *field.Path, structure, values *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	errs := completeness(path, by.Child("not"), structure, values.Not)
	for word, branches := range map[string][]apiextensionsv1.JSONSchemaProps{"allOf": values.AllOf, "anyOf": values.AnyOf, "oneOf": values.OneOf} {
		for i := range branches {
			errs = append(errs, completeness(path, by.Child(word).Index(i), structure, &branches[i])...)
		}
	}
	return errs
}

func completeness(path, by *field.Path, structure, nested *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	if nested == nil {
		return nil
	}
	if structure == nil {
		return field.ErrorList{field.Required(path, "because it is defined in "+by.String())}
	}
	errs := completenessOfValues(path, by, structure, nested)
	errs = append(errs, completeness(path.Child("items"), by.Child("items"), itemsOf(structure), itemsOf(nested))...)
	for name, property := range nested.Properties {
		inside, byInside := path.Child("properties").Key(name), by.Child("properties").Key(name)
		if specified, ok := structure.Properties[name]; ok {
			errs = append(errs, completeness(inside, byInside, &specified, &property)...)
		} else {
			errs = append(errs, field.Required(inside, "because it is defined in "+byInside.String()))
		}
	}
	return errs
}
