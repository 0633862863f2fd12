package registry

import (
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// invalid returns the error for an object of the kind that has problems.
func (r *Registry) invalid(name string, problems field.ErrorList) error {
	return excerpt.Invalid(r.kind.GVK.GroupKind(), name, problems)
}

// UnfitError is the error of an ObjectUpdate for a request that no state of the stored object allows, because Object, which the
// request sends, is of another kind. A Registry adds the mistakes in the metadata of Object to Problems, unless its resourceVersion or
// uid does not meet a precondition: that is found first.
type UnfitError struct {
	Object   runtime.Object
	Kind     schema.GroupKind // that the request names
	Name     string           // of Object
	Problems field.ErrorList
}

// Error returns the message of the Status that Unwrap returns.
func (e *UnfitError) Error() string { return e.with(nil).Error() }

// Unwrap returns the StatusError (422) for the Problems.
func (e *UnfitError) Unwrap() error { return e.with(nil) }

// with returns the StatusError for the Problems and others, which come first.
func (e *UnfitError) with(others field.ErrorList) error {
	return excerpt.Invalid(e.Kind, e.Name, append(others[:len(others):len(others)], e.Problems...))
}

// versionFor returns the name of the hub's version for clients that use the version of the kind k.
func (r *Registry) versionFor(k *runtime.Kind) string {
	if k.GVK.Group == r.kind.GVK.Group {
		return r.kind.GVK.Version
	}
	return r.kind.GVK.GroupVersion().String()
}
