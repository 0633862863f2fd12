package registry

import "k8s.io/apimachinery/pkg/runtime/schema"

// As returns the registry of the same objects as another group serves them which the kind is in too: errors name that
// group's resource. Rules, admission and what it is shown, and where objects are stored, are those of the hub.
func (r *Registry) As(resource schema.GroupResource) *Registry {
	other := *r
	other.resource = resource
	return &other
}
