package structural

import (
	"fmt"
	"reflect"

	"github.com/keelson-dev/keelson/runtime/structural/internal/written"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Options are the inputs of [Check] besides the schema. The zero value is for a new schema of an object without the status
// subresource.
type Options struct {
	// StatusSubresource means that status is a subresource. Then only some keywords are allowed at the root: those that keep
	// their meaning when the status is validated alone.
	StatusSubresource bool
	// Tolerance has the faults that the definition had before the update; see [Tolerated].
	Tolerance
	// Effort bounds the validation of all defaults. Several schemas may share it. If it is nil, each call has [MaxEffort].
	Effort *Effort
}

// Tolerance has the faults that are accepted in a schema, because earlier schemas of the same definition had them when the check
// did not exist.
type Tolerance struct {
	UnprunedDefaults bool // defaults with fields that the schema does not specify
	NonAtomicSets    bool // lists of type set with objects or lists that are not atomic
	LooseKeys        bool // list keys that are nullable, or optional without a default; nullable elements of sets and maps
	UnknownTypes     bool // types that OpenAPI does not have
	NonStructural    bool // schemas that are not structural, with any defaults
}

// Tolerated returns the faults to accept in an update of a definition with the old schemas. Elements of old may be nil. It never
// sets NonStructural: values cannot be pruned by a schema that is not structural, so only the caller can accept that, for
// definitions that do not prune.
func Tolerated(old ...*apiextensionsv1.JSONSchemaProps) Tolerance {
	var t Tolerance
	var found written.Leniency
	for _, root := range old {
		t.UnprunedDefaults = t.UnprunedDefaults || hasUnprunedDefaults(root)
		found.Add(root)
	}
	t.NonAtomicSets, t.LooseKeys, t.UnknownTypes = found.NonAtomicSets, found.LooseKeys, found.UnknownTypes
	return t
}

// leniency returns the part of t that concerns keywords.
func (t Tolerance) leniency() written.Leniency {
	return written.Leniency{NonAtomicSets: t.NonAtomicSets, LooseKeys: t.LooseKeys, UnknownTypes: t.UnknownTypes}
}

// hasUnprunedDefaults reports whether the only faults of a schema are defaults that change when they are pruned.
func hasUnprunedDefaults(props *apiextensionsv1.JSONSchemaProps) bool {
	s, err := build(props)
	if err != nil || s == nil {
		return false
	}
	var defaults []any
	none := true
	for _, s := range s.All(nil) {
		defaults = append(defaults, s.Default)
		none = none && s.Default == nil
	}
	if none || len(written.StructuralErrors(nil, props)) > 0 {
		return false
	}
	pruned, err := Compile(props)
	if err != nil {
		return false
	}
	i := 0
	for _, s := range pruned.All(nil) {
		if !reflect.DeepEqual(s.Default, defaults[i]) {
			return true
		}
		i++
	}
	return false
}

// Check returns the reasons why a schema may not be that of a custom resource, in the words of kube-apiserver. path is the path
// of the schema, as in spec.versions[0].schema.openAPIV3Schema. A nil schema has no faults; the caller decides whether a schema
// is required.
//
// For CEL rules it checks only the parts that are not CEL: that the rule is not empty, that its message can be shown, that its
// reason is known, and that its path leads to a field.
func Check(path *field.Path, props *apiextensionsv1.JSONSchemaProps, options Options) field.ErrorList {
	if props == nil {
		return nil
	}
	if written.Deeper(props, MaxDepth) {
		return field.ErrorList{field.Invalid(path, "", fmt.Sprintf("schemas cannot be nested more than %d deep", MaxDepth))}
	}
	var errs field.ErrorList
	if options.StatusSubresource {
		errs = append(errs, written.RootErrors(path, props)...)
	}
	if props.Nullable {
		errs = append(errs, field.Forbidden(path.Child("nullable"), "nullable cannot be true at the root"))
	}
	s, failure := build(props)
	if options.NonStructural {
		failure = nil
	} else if failure == nil {
		found := written.StructuralErrors(path, props)
		if len(found) == 0 {
			found = defaultErrors(path, s, options)
		}
		errs = append(errs, found...)
	}
	errs = append(errs, written.KeywordErrors(path, props, options.leniency(), nil)...)
	if len(errs) == 0 && failure != nil { // mostly the failure is among the other errors already
		errs = append(errs, field.Invalid(path, "", failure.Error()))
	}
	return errs
}
