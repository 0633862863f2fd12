package jsonvalue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/structural/internal/formats"
	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// CoerceMetadata converts the metadata of an object as decoding it into a metav1.ObjectMeta does. It returns the paths, below
// metadata, of the fields that an ObjectMeta does not have, at most report of them. Fields of a wrong type are an error, or are
// dropped if drop is set. Metadata that is not an object is always an error. Nothing is done if there is no metadata.
func CoerceMetadata(object map[string]any, drop bool, report int) ([]string, error) {
	value, ok := object[word.Metadata]
	if !ok || IsCanonical(value) {
		return nil, nil
	}
	return RecodeMetadata(object, drop, report)
}

// RecodeMetadata is like CoerceMetadata for metadata that exists. It always encodes and decodes it as an ObjectMeta.
func RecodeMetadata(object map[string]any, drop bool, report int) ([]string, error) {
	value := object[word.Metadata]
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	meta := &metav1.ObjectMeta{}
	unknown, err := decodeMetadata(text, meta, report)
	if err != nil {
		if !drop {
			return nil, err
		}
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("invalid metadata: expected object, got %T", value)
		}
		meta, unknown = decodableMetadata(fields, report)
	}
	dropZeroTimes(meta)
	coerced, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(meta)
	if err != nil {
		return nil, err
	}
	object[word.Metadata] = coerced
	return unknown, nil
}

// dropZeroTimes removes zero times, which would be encoded as null.
func dropZeroTimes(meta *metav1.ObjectMeta) {
	if meta.DeletionTimestamp.IsZero() {
		meta.DeletionTimestamp = nil
	}
	for i := range meta.ManagedFields {
		if meta.ManagedFields[i].Time.IsZero() {
			meta.ManagedFields[i].Time = nil
		}
	}
}

// decodeMetadata decodes text into meta, and returns the paths of unknown fields.
func decodeMetadata(text []byte, meta *metav1.ObjectMeta, report int) ([]string, error) {
	if report <= 0 {
		return nil, json.Unmarshal(text, meta)
	}
	found, err := kjson.UnmarshalStrict(text, meta)
	if err != nil {
		return nil, err
	}
	var unknown []string
	for _, err := range found {
		var at kjson.FieldError
		if errors.As(err, &at) && len(unknown) < report {
			unknown = append(unknown, at.FieldPath())
		}
	}
	return unknown, nil
}

// decodableMetadata decodes the fields one by one, and leaves out those that do not decode.
func decodableMetadata(fields map[string]any, report int) (*metav1.ObjectMeta, []string) {
	meta := &metav1.ObjectMeta{}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text, err := json.Marshal(map[string]any{name: fields[name]})
		if err != nil || json.Unmarshal(text, &metav1.ObjectMeta{}) != nil {
			continue
		}
		more, _ := decodeMetadata(text, meta, report-len(unknown)) // it decoded above, so there is no error
		unknown = append(unknown, more...)
	}
	return meta, unknown
}

// IsCanonical reports whether an ObjectMeta certainly does not change the metadata. The metadata of most objects is canonical, so
// it need not be encoded and decoded.
func IsCanonical(value any) bool {
	fields, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for name, v := range fields {
		switch name {
		case "name", "generateName", "namespace", "uid", "resourceVersion":
			ok = isText(v)
		case "generation":
			n, isInt := v.(int64)
			ok = isInt && n != 0
		case "creationTimestamp", "deletionTimestamp":
			ok = isTime(v)
		case "deletionGracePeriodSeconds":
			_, ok = v.(int64)
		case "labels", "annotations":
			texts, isMap := v.(map[string]any)
			ok = isMap && len(texts) > 0
			for _, text := range texts {
				_, isString := text.(string)
				ok = ok && isString
			}
		case "finalizers":
			ok = eachOf(v, isText)
		case "ownerReferences":
			ok = eachOf(v, isOwner)
		case "managedFields":
			ok = eachOf(v, isManagedFields)
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return true
}

func eachOf(v any, is func(any) bool) bool {
	list, ok := v.([]any)
	return ok && len(list) > 0 && !slices.ContainsFunc(list, func(element any) bool { return !is(element) })
}

func isText(v any) bool {
	text, ok := v.(string)
	return ok && text != ""
}

// isTime reports whether a time is in the form in which a metav1.Time is encoded.
func isTime(v any) bool {
	text, ok := v.(string)
	return ok && formats.IsUTC(text) && text != "0001-01-01T00:00:00Z" // the zero time
}

func isOwner(v any) bool {
	owner, _ := v.(map[string]any)
	required := 0
	for name, v := range owner {
		switch name {
		case word.APIVersion, word.Kind, "name", "uid":
			if _, ok := v.(string); !ok {
				return false
			}
			required++
		case "controller", "blockOwnerDeletion":
			if _, ok := v.(bool); !ok {
				return false
			}
		default:
			return false
		}
	}
	return required == 4
}

func isManagedFields(v any) bool {
	entry, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for name, v := range entry {
		switch name {
		case "manager", "operation", word.APIVersion, "fieldsType", "subresource":
			ok = isText(v)
		case "time":
			ok = isTime(v)
		case "fieldsV1":
			ok = v != nil && isFieldSet(v)
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return true
}

// isFieldSet reports whether v consists only of objects.
func isFieldSet(v any) bool {
	members, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for _, member := range members {
		if !isFieldSet(member) {
			return false
		}
	}
	return true
}

// ValidateResource validates the fields that make an object a Kubernetes object. A name is not required.
func ValidateResource(path *field.Path, object map[string]any) field.ErrorList {
	var errs field.ErrorList
	version, hasVersion := object[word.APIVersion]
	kindOf, hasKind := object[word.Kind]
	if !hasVersion {
		errs = append(errs, field.Required(path.Child(word.APIVersion), ""))
	}
	if !hasKind {
		errs = append(errs, field.Required(path.Child(word.Kind), ""))
	}
	if hasVersion {
		if err := textError(path.Child(word.APIVersion), version, func(text string) string {
			if _, err := schema.ParseGroupVersion(text); err != nil {
				return err.Error()
			}
			return ""
		}); err != nil {
			errs = append(errs, err)
		}
	}
	if hasKind {
		if err := textError(path.Child(word.Kind), kindOf, func(text string) string {
			if problems := utilvalidation.IsDNS1035Label(strings.ToLower(text)); len(problems) > 0 {
				return "may have mixed case, but should otherwise match: " + strings.Join(problems, ",")
			}
			return ""
		}); err != nil {
			errs = append(errs, err)
		}
	}
	value, ok := object[word.Metadata]
	if !ok {
		return errs
	}
	meta := &metav1.ObjectMeta{}
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, meta)
	}
	if err != nil {
		return append(errs, field.Invalid(path.Child(word.Metadata), value, err.Error()))
	}
	if meta.Name == "" {
		meta.Name = "unnamed" // any valid name: templates have no names
	}
	return append(errs, validation.ValidateObjectMetaDeclaratively(context.Background(), operation.Create, meta, nil,
		meta.Namespace != "", pathSegment, path.Child(word.Metadata), true)...)
}

// textError validates a string that must not be empty.
func textError(path *field.Path, value any, problem func(string) string) *field.Error {
	text, ok := value.(string)
	switch {
	case !ok:
		return field.Invalid(path, value, "must be a string")
	case text == "":
		return field.Invalid(path, text, "must not be empty")
	}
	if problem := problem(text); problem != "" {
		return field.Invalid(path, text, problem)
	}
	return nil
}

func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}
