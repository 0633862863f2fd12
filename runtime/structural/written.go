package structural

import (
	"crypto/sha256"

	"github.com/keelson-dev/keelson/runtime/structural/internal/written"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// NonStructural returns what keeps a schema from being structural, in the words of kube-apiserver, sorted: a part of what
// [Check] finds, for the condition NonStructuralSchema of a definition that was stored by somebody else. A nil schema is
// structural. path is where the schema is.
func NonStructural(path *field.Path, props *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	if props == nil {
		return nil
	}
	return written.StructuralErrors(path, props)
}

// Warnings returns what is not wrong with a schema but worth telling its author: formats that mean nothing, each time they
// are used, and sets that server-side apply cannot merge. In an update, those that the old schema had too are not told.
func Warnings(props *apiextensionsv1.JSONSchemaProps) []string { return written.Warnings(props) }

// OpenAPI returns a schema as it is published: in the form of OpenAPI v3 with all that its author wrote, the texts included.
// A null as default or example is none, and what no structural schema has is left out. It fails on a schema with a value that
// is not JSON or that is nested deeper than [MaxDepth]. The result shares with props only numbers and rules, which nobody
// may change in place. A nil schema gives nil.
func OpenAPI(props *apiextensionsv1.JSONSchemaProps) (*spec.Schema, error) {
	return written.OpenAPI(props)
}

// Fingerprint tells schemas apart. It is comparable; that of two schemas is the same, as far as SHA-256 goes, only if
// [Compile] makes the same of them.
type Fingerprint [sha256.Size]byte

// FingerprintOf returns the fingerprint of a schema. Descriptions, titles, examples and links to documents do not count,
// and neither does the order of properties. A nil schema has one too.
func FingerprintOf(props *apiextensionsv1.JSONSchemaProps) (Fingerprint, error) {
	sum, err := written.Fingerprint(props)
	return Fingerprint(sum), err
}

// MaxDepth is how deep schemas may be nested. kube-apiserver has no such limit but that of JSON, which is far beyond what
// anybody writes. It is 500.
const MaxDepth = written.MaxDepth
