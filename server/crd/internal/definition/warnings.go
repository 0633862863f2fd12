package definition

import (
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Warnings returns warnings for the author of a valid definition: each use of a format without a meaning, and then sets that
// server-side apply cannot merge, each text once. old is the old definition, nil on create. Warnings that apply to old too are
// left out.
func Warnings(crd, old *apiextensionsv1.CustomResourceDefinition) []string {
	seen := map[string]bool{}
	if old != nil {
		for _, text := range warningsOf(&old.Spec) {
			seen[text] = true
		}
	}
	return slices.DeleteFunc(warningsOf(&crd.Spec), func(text string) bool { return seen[text] })
}

func warningsOf(spec *apiextensionsv1.CustomResourceDefinitionSpec) []string {
	var formats, sets []string
	for _, at := range schemasOf(spec, field.NewPath("spec")) {
		for _, text := range structural.Warnings(at.props) {
			if strings.HasPrefix(text, "x-kubernetes-list-type: set ") {
				sets = append(sets, text)
			} else {
				formats = append(formats, text)
			}
		}
	}
	slices.Sort(sets)
	return append(formats, slices.Compact(sets)...)
}
