package written

import (
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/runtime/structural/internal/formats"
	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Warnings returns a warning for each use of a format that has no effect, and for sets that server-side apply cannot merge.
func Warnings(props *apiextensionsv1.JSONSchemaProps) []string {
	var warnings, sets []string
	for node := range nodes(props) {
		if node.Format != "" && !formats.Known(node.Type, false, node.Format) {
			warnings = append(warnings, fmt.Sprintf("unrecognized format %q", node.Format))
		}
		items := itemsOf(node)
		if node.XListType == nil || *node.XListType != word.ListSet || items == nil || items.Type != word.Object && items.Type != word.Array {
			continue
		}
		warning := fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", items.Type)
		if !slices.Contains(sets, warning) {
			sets = append(sets, warning)
		}
	}
	slices.Sort(sets)
	return append(warnings, sets...)
}
