package schema

import (
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Describer describes the objects of a kind without a Go type. If a runtime.ObjectSchema implements it, the kind's schema is
// published in OpenAPI, and server-side apply merges objects by it. Its methods may be called concurrently, and must return the
// same each time. If the objects of a kind change, the kind needs another Describer. Describers are compared to find out which
// definitions must be made again, so they must be pointers, or comparable values that are equal only if their descriptions are
// equal.
type Describer interface {
	// MergeSchema returns the parts of an object's schema that server-side apply needs: types, members, lists and maps, but no
	// conditions on values. meta is the schema of metadata. [structural.Schema.MergeSchema] is an implementation.
	//
	// [structural.Schema.MergeSchema]: https://pkg.go.dev/github.com/keelson-dev/keelson/runtime/structural#Schema.MergeSchema
	MergeSchema(meta spec.Schema) *spec.Schema
	// OpenAPI returns the schema of an object as its author wrote it, in the form of OpenAPI v3, with the extensions of
	// Kubernetes and without references. It need not contain apiVersion, kind and metadata, which all objects and embedded
	// resources have. nil means that an object may have any fields besides these. Each call returns a new value, which is the
	// caller's own.
	OpenAPI() *spec.Schema
}
