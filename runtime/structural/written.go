package structural

import (
	"crypto/sha256"

	"github.com/keelson-dev/keelson/runtime/structural/internal/written"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// NonStructural returns the reasons why a schema is not structural, in the words of kube-apiserver, sorted. These are a part of
// the errors of [Check]. They are for the condition NonStructuralSchema of a stored definition. A nil schema is structural. path
// is the path of the schema.
func NonStructural(path *field.Path, props *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	if props == nil {
		return nil
	}
	return written.StructuralErrors(path, props)
}

// Warnings returns warnings for the author of a valid schema: formats that have no effect, once for each use, and sets that
// server-side apply cannot merge. In an update, the caller should leave out the warnings that the old schema had too.
func Warnings(props *apiextensionsv1.JSONSchemaProps) []string { return written.Warnings(props) }

// OpenAPI returns the published form of a schema: OpenAPI v3 with everything that the author wrote, including the texts. A null
// as default or example is left out, and so are keywords that no structural schema has. It fails for a schema with a value that
// is not JSON, or that is nested deeper than [MaxDepth]. The result shares only numbers and rules with props; these must not be
// changed in place. A nil schema gives nil.
func OpenAPI(props *apiextensionsv1.JSONSchemaProps) (*spec.Schema, error) {
	return written.OpenAPI(props)
}

// Fingerprint identifies a compiled schema. It is comparable. Two schemas have the same fingerprint only if [Compile] makes the
// same Schema of them, assuming that SHA-256 has no collisions.
type Fingerprint [sha256.Size]byte

// FingerprintOf returns the fingerprint of a schema. Descriptions, titles, examples, links to documents and the order of
// properties have no effect. A nil schema has a fingerprint too.
func FingerprintOf(props *apiextensionsv1.JSONSchemaProps) (Fingerprint, error) {
	sum, err := written.Fingerprint(props)
	return Fingerprint(sum), err
}

// MaxDepth is the maximum nesting depth of schemas, 500. kube-apiserver has only the limit of its JSON decoder, which is much
// greater than any real schema needs.
const MaxDepth = written.MaxDepth
