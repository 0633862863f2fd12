package schema

import (
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Describer describes the objects of a kind without a Go type. A runtime.ObjectSchema that is one is published in OpenAPI,
// and its objects are merged by it. Its methods may be called concurrently, and say the same each time: a kind whose objects
// become others gets another Describer. Describers are compared to see what has to be described anew, so they are
// pointers, or other values that are comparable and the same only where what they say is.
type Describer interface {
	// MergeSchema returns what server-side apply has to know of an object: types, members, lists and maps, but no
	// conditions on values. meta is the schema of metadata. [structural.Schema.MergeSchema] is one.
	//
	// [structural.Schema.MergeSchema]: https://pkg.go.dev/github.com/keelson-dev/keelson/runtime/structural#Schema.MergeSchema
	MergeSchema(meta spec.Schema) *spec.Schema
	// OpenAPI returns the schema of an object as its author wrote it, in the form of OpenAPI v3, with the extensions of
	// Kubernetes and without references. What all objects and embedded resources have (apiVersion, kind and metadata) need
	// not be in it. nil: of objects it is only known what all have. The result is made anew by each call and the caller's.
	OpenAPI() *spec.Schema
}
