package library

import (
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// JSONPatch returns the library with jsonpatch.escapeKey, which escapes a key for a path of a JSON patch. Only expressions that
// make patches have it. https://www.rfc-editor.org/rfc/rfc6901
func JSONPatch() celgo.EnvOption {
	escape := strings.NewReplacer("/", "~1", "~", "~0")
	return celgo.Lib(lib{name: "kubernetes.jsonpatch", functions: []function{
		global("jsonpatch.escapeKey", "string_jsonpatch_escapeKey_string", args(celgo.StringType), celgo.StringType,
			onString(func(s string) ref.Val { return types.String(escape.Replace(s)) })),
	}})
}
