package structural

import (
	"github.com/keelson-dev/keelson/runtime/structural/internal/written"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Groundwork is the result of the checks that must come before the rules of a schema can be checked. Package runtime/cel/rules
// uses it.
type Groundwork struct {
	// Schema is the compiled schema, with its defaults as written. It is nil if the schema is not structural; then no rule is
	// checked.
	Schema *Schema
	// Defaults are the errors of defaults. If there are any, the rules themselves are not checked. The rules are still
	// evaluated on defaults without errors, and on those with only errors for which OnlyUnpruned is true.
	Defaults field.ErrorList
	// Keywords are the errors of keywords.
	Keywords field.ErrorList
	// Faulty has the paths of schemas that have one of these errors in them or below; their rules are not checked. An error
	// belongs to the schema whose keyword it is about. For example, an error about a list key has a path inside the items, but
	// the rules of the items are checked.
	Faulty map[string]bool
}

// unknownInDefault is the detail of the error of a default with fields that its schema does not specify.
const unknownInDefault = "must not have unknown fields"

// OnlyUnpruned reports whether an error of Groundwork.Defaults is about unknown fields. Rules are evaluated on a default that
// has only such errors.
func OnlyUnpruned(err *field.Error) bool { return err.Detail == unknownInDefault }

// Prepare returns the groundwork of a schema. The errors in it are among those of [Check]. path is the path of the schema.
func Prepare(path *field.Path, props *apiextensionsv1.JSONSchemaProps, options Options) Groundwork {
	if props == nil || options.NonStructural || written.Deeper(props, MaxDepth) {
		return Groundwork{}
	}
	s, err := build(props)
	if err != nil || len(written.StructuralErrors(path, props)) > 0 {
		return Groundwork{}
	}
	faulty := map[string]bool{}
	found := written.KeywordErrors(path, props, options.leniency(), faulty)
	return Groundwork{Schema: s, Defaults: defaultErrors(path, s, options), Keywords: found, Faulty: faulty}
}
