package structural

import (
	"github.com/keelson-dev/keelson/runtime/structural/internal/written"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Groundwork is what has to be in order before rules of a schema can be judged. It is for whoever does that.
type Groundwork struct {
	// Schema is the schema, compiled with its defaults as written. It is nil if it is not structural: then no rule is judged.
	Schema *Schema
	// Defaults are wrong defaults. While there are some no rule is judged, but other defaults are by their rules.
	Defaults field.ErrorList
	// Keywords are other faults.
	Keywords field.ErrorList
	// Faulty are the paths of schemas that have one of these faults, or have one below them: their rules are not judged. A fault
	// is one of the schema whose keyword it is about: one of a list's keys has a path in the items, whose rules are judged.
	Faulty map[string]bool
}

// unknownInDefault is the fault of a default which has fields that its schema does not specify.
const unknownInDefault = "must not have unknown fields"

// OnlyUnpruned says that an error of Groundwork.Defaults is of unknown fields: a default that has no other fault is judged by
// its rules too.
func OnlyUnpruned(err *field.Error) bool { return err.Detail == unknownInDefault }

// Prepare returns the groundwork of a schema, of which [Check] tells the faults. path is where the schema is.
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
