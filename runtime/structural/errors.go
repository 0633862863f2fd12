package structural

import (
	"encoding/json"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
)

// fieldErrors makes field errors of what was found, each text once, and not more than maxErrorBytes of them.
func fieldErrors(path *field.Path, found []error) field.ErrorList {
	var all told
	seen := map[string]bool{}
	for _, err := range found {
		if text := err.Error(); !seen[text] && !errors.Is(err, errNotTold) {
			seen[text] = true
			all.add(fieldError(path, err))
		}
		if all.full() {
			break
		}
	}
	return all.errs
}

func fieldError(path *field.Path, err error) *field.Error {
	found, ok := err.(*openapierrors.Validation) //nolint:errorlint // kube-openapi wraps none
	if !ok {
		return field.Invalid(path, "", err.Error())
	}
	if found.Name != "" && found.Name != "." {
		path = path.Child(strings.TrimPrefix(found.Name, "."))
	}
	value := found.Value
	if value == nil {
		value = ""
	}
	switch found.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(path, "")
	case openapierrors.EnumFailCode:
		return field.NotSupported(path, found.Value, alternatives(found.Values))
	case openapierrors.TooLongFailCode:
		return field.TooLong(path, "", wholeOr(found.Valid, -1))
	case openapierrors.MaxItemsFailCode, openapierrors.TooManyPropertiesCode:
		return field.TooMany(path, wholeOr(found.Value, -1), wholeOr(found.Valid, -1))
	case openapierrors.InvalidTypeCode:
		return field.TypeInvalid(path, value, err.Error())
	}
	return field.Invalid(path, value, err.Error())
}

func wholeOr(v any, otherwise int) int {
	if v, ok := v.(int64); ok {
		return int(v)
	}
	return otherwise
}

// alternatives are the values of an enum as texts.
func alternatives(values []any) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		if text, ok := v.(string); ok {
			texts[i] = text
			continue
		}
		text, _ := json.Marshal(v) // decoded JSON can be encoded
		texts[i] = string(text)
	}
	return texts
}
