package structural

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// NonStructural returns what keeps a schema from being structural, in the words of kube-apiserver, sorted: a part of what
// [Check] finds, for the condition NonStructuralSchema of a definition that was stored by somebody else. A nil schema is
// structural. path is where the schema is.
func NonStructural(path *field.Path, props *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	if props == nil {
		return nil
	}
	return structuralErrors(path, props)
}
