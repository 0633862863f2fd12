package codec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/internal/protobuf"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The prefixes with which kube-apiserver marks stored values that are not JSON:
// https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding and
// https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/.
const (
	protobufMark  = "k8s\x00"
	encryptedMark = "k8s:enc:"
	cborMark      = "\xd9\xd9\xf7" // https://www.rfc-editor.org/rfc/rfc8949#self-describe
)

// content is a stored value whose kind is known. fill decodes it into an object; an object without a Go type must be conformed to
// its schema after that.
type content struct {
	gvk      schema.GroupVersionKind
	fill     func(obj runtime.Object) error
	protobuf bool
}

// storedKind is kindOf for JSON that this package has probably written: then the kind is found without reading the whole text.
func storedKind(value []byte) (schema.GroupVersionKind, error) {
	d, err := ParseDocument(value)
	if err != nil {
		return kindOf(value)
	}
	gv, err := schema.ParseGroupVersion(d.APIVersion())
	return gv.WithKind(d.Kind()), err
}

// envelope reads the value after the mark. types caches the tables of the types that it is decoded into.
func envelope(types *protobuf.Compiler, rest []byte) (content, error) {
	gvk, message, err := openEnvelope(rest)
	if err != nil {
		return content{}, fmt.Errorf("the protobuf envelope is broken: %w", err)
	}
	return content{gvk: gvk, protobuf: true, fill: func(obj runtime.Object) error {
		m, err := messageOf(types, obj)
		if err != nil {
			return fmt.Errorf("the value is protobuf, which cannot be read into a %T (%w): let kube-apiserver store it as JSON, or use a Go type that has a protobuf form", obj, err)
		}
		return unmarshalMessage(m, message, obj)
	}}, nil
}

// encrypted returns the error for a value that kube-apiserver has encrypted. The text after the mark is
// <provider>:<version>:<name of the key or of the KMS plug-in>:.
func encrypted(text []byte) error {
	const longest = 512
	parts := strings.SplitN(string(text[:min(len(text), longest)]), ":", 4)
	if len(parts) < 4 {
		return errors.New("the value is encrypted, in a way that is not known")
	}
	what := "key"
	if parts[0] == "kms" {
		what = "KMS plug-in"
	}
	return fmt.Errorf("the value is encrypted, by the provider %q (%q) with the %s %q: it must be decrypted before this store can read it", parts[0], parts[1], what, parts[2])
}
