package jsonvalue

import (
	"encoding/json"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
)

// FieldErrors converts the errors of kube-openapi to field errors. Each text is returned once. There are at most MaxErrors
// errors, and about MaxErrorBytes of them.
func FieldErrors(path *field.Path, found []error) field.ErrorList {
	var all Errors
	seen := map[string]bool{}
	for _, err := range found {
		if text := err.Error(); !seen[text] && !errors.Is(err, ErrNotReported) {
			seen[text] = true
			all.Add(fieldError(path, err))
		}
		if all.Full() {
			break
		}
	}
	return all.List
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

// alternatives returns the values of an enum as strings.
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

// MaxErrors is the maximum number of errors of one value.
const MaxErrors = 1000

// ErrNotReported takes the place of an error whose text is not made, because the bounds for errors are reached. FieldErrors
// leaves it out.
var ErrNotReported = errors.New("there are more errors")

// Errors collects the errors of a value up to the bounds.
type Errors struct {
	// List has the errors.
	List  field.ErrorList
	bytes int // of their texts
}

// MaxErrorBytes is the maximum length of the errors of one value together. Each error has the path of the value, with the names
// of all objects around it, and the value.
const MaxErrorBytes = 1 << 20

// Add adds an error unless there are enough already.
func (t *Errors) Add(err *field.Error) {
	if !t.Full() {
		t.List = append(t.List, err)
		t.bytes += len(err.Field) + len(err.ErrorBody())
	}
}

// Full reports whether no more errors are added.
func (t *Errors) Full() bool { return len(t.List) >= MaxErrors || t.bytes > MaxErrorBytes }
