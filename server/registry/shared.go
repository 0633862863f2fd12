package registry

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// As returns the registry of the same objects as another group serves them which the kind is in too: errors name that
// group's resource. Rules, admission and what it is shown, and where objects are stored, are those of the hub.
func (r *Registry) As(resource schema.GroupResource) *Registry {
	other := *r
	other.resource = resource
	return &other
}

// In returns the registry of the same objects as another version serves them of a kind without a Go type, whose versions say
// for themselves whether they have a status that is written apart, and a scale, at paths of the hub; nil: none.
func (r *Registry) In(withStatus bool, scale *Scale) (*Registry, error) {
	other := *r
	other.shape, other.noStatus = shapeOf(r.kind.Type, withStatus), !withStatus
	var err error
	if other.scale, err = newUntypedScale(r.kind, scale); err != nil {
		return nil, fmt.Errorf("registry of %s: %w", r.kind.GVK, err)
	}
	return &other, nil
}
