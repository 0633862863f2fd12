package registry

import (
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// invalid returns the error for an object of the kind that has problems.
func (r *Registry) invalid(name string, problems field.ErrorList) error {
	return excerpt.Invalid(r.kind.GVK.GroupKind(), name, problems)
}

// UnfitError is the error of an ObjectUpdate for a request that no state of the stored object allows, because Object, which the
// request sends, is of another kind. A Registry returns Err, unless the resourceVersion or uid of Object is a mistake too: that is
// found first.
type UnfitError struct {
	Object runtime.Object
	Err    error
}

// Error returns the text of Err.
func (e *UnfitError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UnfitError) Unwrap() error { return e.Err }

// versionFor returns the name of the hub's version for clients that use the version of the kind k.
func (r *Registry) versionFor(k *runtime.Kind) string {
	if k.GVK.Group == r.kind.GVK.Group {
		return r.kind.GVK.Version
	}
	return r.kind.GVK.GroupVersion().String()
}
