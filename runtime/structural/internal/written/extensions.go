package written

import (
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// extensions checks the keywords x-kubernetes-...
func (c keywords) extensions(path *field.Path, props *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	var errs field.ErrorList
	if preserve := props.XPreserveUnknownFields; preserve != nil && !*preserve {
		errs = append(errs, field.Invalid(path.Child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined"))
	}
	if mapType := props.XMapType; mapType != nil {
		errs = append(errs, wrongType(path, props.Type, word.Object, "must be object if x-kubernetes-map-type is specified")...)
		if *mapType != word.Atomic && *mapType != word.Granular {
			errs = append(errs, field.NotSupported(path.Child("x-kubernetes-map-type"), *mapType, []string{word.Atomic, word.Granular}))
		}
	}
	if listType := props.XListType; listType != nil {
		if wrong := wrongType(path, props.Type, word.Array, "must be array if x-kubernetes-list-type is specified"); wrong != nil {
			errs = append(errs, wrong...)
		} else if err := nonAtomicSet(path, props); err != nil && !c.tolerance.NonAtomicSets {
			errs = append(errs, err)
		}
		if *listType != word.Atomic && *listType != word.ListSet && *listType != word.ListMap {
			errs = append(errs, field.NotSupported(path.Child("x-kubernetes-list-type"), *listType, []string{word.Atomic, word.ListSet, word.ListMap}))
		}
	}
	errs = append(errs, keyErrors(path, props)...)
	if !c.tolerance.LooseKeys {
		errs = append(errs, looseKeys(path, props)...)
	}
	return errs
}

// wrongType returns an error if the type is not the required one.
func wrongType(path *field.Path, is, want, why string) field.ErrorList {
	switch is {
	case want:
		return nil
	case "":
		return field.ErrorList{field.Required(path.Child("type"), why)}
	}
	return field.ErrorList{field.Invalid(path.Child("type"), is, why)}
}

// nonAtomicSet returns an error for a list of type set whose elements can be changed in part.
func nonAtomicSet(path *field.Path, props *apiextensionsv1.JSONSchemaProps) *field.Error {
	items := itemsOf(props)
	if props.XListType == nil || *props.XListType != word.ListSet || items == nil {
		return nil
	}
	const why = "must be atomic as item of a list with x-kubernetes-list-type=set"
	switch {
	case items.Type == word.Array && items.XListType != nil && *items.XListType != word.Atomic:
		return field.Invalid(path.Child("items").Child("x-kubernetes-list-type"), items.XListType, why)
	case items.Type == word.Object && (items.XMapType == nil || *items.XMapType != word.Atomic):
		return field.Invalid(path.Child("items").Child("x-kubernetes-map-type"), items.XListType, why) // the list type, as in kube-apiserver
	}
	return nil
}

// keyErrors checks the keys of a list of type map.
func keyErrors(path *field.Path, props *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	var errs field.ErrorList
	isMap := props.XListType != nil && *props.XListType == word.ListMap
	if len(props.XListMapKeys) > 0 && !isMap {
		const why = "must be map if x-kubernetes-list-map-keys is non-empty"
		if props.XListType == nil {
			errs = append(errs, field.Required(path.Child("x-kubernetes-list-type"), why))
		} else {
			errs = append(errs, field.Invalid(path.Child("x-kubernetes-list-type"), *props.XListType, why))
		}
	}
	if !isMap {
		return errs
	}
	keys := path.Child("x-kubernetes-list-map-keys")
	if len(props.XListMapKeys) == 0 {
		errs = append(errs, field.Required(keys, "must not be empty if x-kubernetes-list-type is map"))
	}
	if props.Items == nil {
		return append(errs, field.Required(path.Child("items"), "must have a schema if x-kubernetes-list-type is map"))
	}
	items := props.Items.Schema
	switch {
	case items == nil:
		return append(errs, field.Invalid(path.Child("items"), props.Items, "must only have a single schema if x-kubernetes-list-type is map"))
	case items.Type != word.Object:
		return append(errs, field.Invalid(path.Child("items").Child("type"), items.Type, "must be object if parent array's x-kubernetes-list-type is map"))
	}
	for i, key := range props.XListMapKeys {
		property, ok := items.Properties[key]
		switch {
		case !ok:
			errs = append(errs, field.Invalid(keys, props.XListMapKeys, "entries must all be names of item properties"))
		case property.Type == word.Array || property.Type == word.Object: // as in kube-apiserver, the error shows the type of the element
			errs = append(errs, field.Invalid(path.Child("items").Child("properties").Key(key).Child("type"), items.Type,
				"must be a scalar type if parent array's x-kubernetes-list-type is map"))
		}
		if slices.Contains(props.XListMapKeys[:i], key) {
			errs = append(errs, field.Invalid(keys, props.XListMapKeys, "must not contain duplicate entries"))
		}
	}
	return errs
}

// looseKeys returns errors for elements of sets and maps that may be null, and for keys that may be null or absent.
func looseKeys(path *field.Path, props *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	items := itemsOf(props)
	if items == nil || props.XListType == nil || *props.XListType != word.ListSet && *props.XListType != word.ListMap {
		return nil
	}
	var errs field.ErrorList
	path = path.Child("items")
	if items.Nullable {
		errs = append(errs, field.Forbidden(path.Child("nullable"), "cannot be nullable when x-kubernetes-list-type is "+*props.XListType))
	}
	if *props.XListType != word.ListMap {
		return errs
	}
	for _, key := range props.XListMapKeys {
		property, ok := items.Properties[key]
		if !ok {
			continue
		}
		at := path.Child("properties").Key(key)
		value, err := Decoded(property.Default)
		if !slices.Contains(items.Required, key) && value == nil && err == nil {
			errs = append(errs, field.Required(at.Child("default"),
				"this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"))
		}
		if property.Nullable {
			errs = append(errs, field.Forbidden(at.Child("nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
		}
	}
	return errs
}

// ruleErrors checks the parts of rules that are not CEL. Paths are not checked if a keyword is unsupported.
func ruleErrors(path *field.Path, props *apiextensionsv1.JSONSchemaProps, unsupported bool) field.ErrorList {
	var errs field.ErrorList
	for i, rule := range props.XValidations {
		at := path.Child("x-kubernetes-validations").Index(i)
		text, message := strings.TrimSpace(rule.Rule), strings.TrimSpace(rule.Message)
		switch {
		case text == "":
			errs = append(errs, field.Required(at.Child("rule"), "rule is not specified"))
		case rule.Message != "" && message == "":
			errs = append(errs, field.Invalid(at.Child("message"), rule.Message, "must be non-empty if specified"))
		case hasLineBreak(message):
			errs = append(errs, field.Invalid(at.Child("message"), rule.Message, "must not contain line breaks"))
		case hasLineBreak(text) && message == "":
			errs = append(errs, field.Required(at.Child("message"), "message must be specified if rule contains line breaks"))
		}
		if rule.MessageExpression != "" && strings.TrimSpace(rule.MessageExpression) == "" {
			errs = append(errs, field.Required(at.Child("messageExpression"), "messageExpression must be non-empty if specified"))
		}
		if reasons := reasons(); rule.Reason != nil && !slices.Contains(reasons, string(*rule.Reason)) {
			errs = append(errs, field.NotSupported(at.Child("reason"), *rule.Reason, reasons))
		}
		if rule.FieldPath == "" {
			continue
		}
		if strings.TrimSpace(rule.FieldPath) == "" {
			errs = append(errs, field.Invalid(at.Child("fieldPath"), rule.FieldPath, "must be non-empty if specified"))
		}
		if hasLineBreak(rule.FieldPath) {
			errs = append(errs, field.Invalid(at.Child("fieldPath"), rule.FieldPath, "must not contain line breaks"))
		}
		if !unsupported && !leads(rule.FieldPath, props) {
			errs = append(errs, field.Invalid(at.Child("fieldPath"), rule.FieldPath, "must be a valid path"))
		}
	}
	return errs
}

func reasons() []string {
	return []string{
		string(apiextensionsv1.FieldValueDuplicate), string(apiextensionsv1.FieldValueForbidden),
		string(apiextensionsv1.FieldValueInvalid), string(apiextensionsv1.FieldValueRequired),
	}
}

func hasLineBreak(text string) bool {
	return strings.ContainsAny(text, "\n\r")
}
