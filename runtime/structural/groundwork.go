package structural

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Groundwork is what has to be in order before rules of a schema can be judged. It is for whoever does that.
type Groundwork struct {
	// Schema is the schema, compiled with its defaults as written. It is nil if it is not structural: then no rule is judged.
	Schema *Schema
	// Defaults are wrong defaults. While there are some no rule is judged, but other defaults are by their rules.
	Defaults field.ErrorList
	// Keywords are other faults. Rules of schemas that have one, or have one below them, are not judged.
	Keywords field.ErrorList
}

// Prepare returns the groundwork of a schema, of which [Check] tells the faults. path is where the schema is.
func Prepare(path *field.Path, props *apiextensionsv1.JSONSchemaProps, options Options) Groundwork {
	if props == nil || options.NonStructural || deeper(props, MaxDepth) {
		return Groundwork{}
	}
	s, err := build(props)
	if err != nil || len(structuralErrors(path, props)) > 0 {
		return Groundwork{}
	}
	c := keywords{tolerance: options.Tolerance, defaults: true, unsupported: new(int)}
	return Groundwork{Schema: s, Defaults: defaultErrors(path, s, options.Tolerance), Keywords: c.check(path, props, true)}
}
