package structural

import (
	"fmt"
	"reflect"

	"github.com/keelson-dev/keelson/runtime/structural/internal/written"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Options say what [Check] has to know besides the schema. The zero value checks a new schema of an object without the
// status subresource.
type Options struct {
	// StatusSubresource is set if status is a subresource: then only some keywords are allowed at the root, those that
	// lose nothing when the status is judged by itself.
	StatusSubresource bool
	// Tolerance is what the definition that is updated was already guilty of: see [Tolerated].
	Tolerance
	// Effort is for all defaults that are judged with it, so that several schemas may have it in common; nil: there is [MaxEffort]
	// for this one.
	Effort *Effort
}

// Tolerance is what is not held against a schema, because earlier ones of the same definition had it when the rule did not
// exist.
type Tolerance struct {
	UnprunedDefaults bool // defaults with members that are not specified
	NonAtomicSets    bool // lists of type set with objects or lists that are not atomic
	LooseKeys        bool // keys of lists that are optional without default, or nullable; nullable elements of sets and maps
	UnknownTypes     bool // types that OpenAPI does not have
	NonStructural    bool // schemas that are not structural, with whatever defaults
}

// Tolerated returns what is tolerated in an update of a definition with the old schemas, of which some may be nil. It never
// tolerates schemas that are not structural: for nothing can be pruned by them, that is only for definitions which ask for
// no pruning.
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

// leniency is the part of t that is about keywords.
func (t Tolerance) leniency() written.Leniency {
	return written.Leniency{NonAtomicSets: t.NonAtomicSets, LooseKeys: t.LooseKeys, UnknownTypes: t.UnknownTypes}
}

// hasUnprunedDefaults says that a schema is fine but for defaults which change when they are pruned.
func hasUnprunedDefaults(props *apiextensionsv1.JSONSchemaProps) bool {
	s, err := build(props)
	if err != nil || s == nil || len(written.StructuralErrors(nil, props)) > 0 {
		return false
	}
	pruned, err := Compile(props)
	if err != nil {
		return false
	}
	var defaults []any
	for _, s := range s.All(nil) {
		defaults = append(defaults, s.Default)
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

// Check returns why a schema may not be that of a custom resource, in the words of kube-apiserver. path is where the schema
// is, as in spec.versions[0].schema.openAPIV3Schema. A nil schema has no faults: whether there has to be one is for
// the caller to say.
//
// Rules in CEL are checked for what is not CEL: that they have a rule and a message that can be shown, a known reason, and a
// path that leads somewhere.
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
	if len(errs) == 0 && failure != nil { // mostly it is among the others already
		errs = append(errs, field.Invalid(path, "", failure.Error()))
	}
	return errs
}
