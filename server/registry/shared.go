package registry

import (
	"fmt"
	"sync"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// As returns a registry of the same objects for another group that serves the kind. Errors name the resource of that group. The
// rules, admission requests and storage keys are those of the hub.
func (r *Registry) As(resource schema.GroupResource) *Registry {
	other := *r
	other.resource = resource
	return &other
}

// In returns a registry of the same objects for another version of a kind without a Go type. Each version of such a kind can have
// a separate status, and a scale at paths of that version. A nil scale is no scale.
func (r *Registry) In(version schema.GroupVersion, withStatus bool, scale *Scale) (*Registry, error) {
	other := *r
	other.version = version
	other.shape, other.noStatus = shapeOf(r.kind.Type, withStatus), !withStatus
	var err error
	if other.scale, err = newUntypedScale(r.kind, scale); err != nil {
		return nil, fmt.Errorf("registry of %s: %w", r.kind.GVK, err)
	}
	if scale != nil {
		r.replicas.set(version, scale.SpecReplicas)
	}
	return &other, nil
}

// replicaPaths has the path of the replicas in each version that has a scale, for all registries of the same objects.
type replicaPaths struct {
	mu sync.Mutex                     // guards of
	of map[schema.GroupVersion]string // in the form of Scale.SpecReplicas
}

func (p *replicaPaths) set(version schema.GroupVersion, path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[schema.GroupVersion]string{}
	}
	p.of[version] = path
}

// in returns the path of the replicas in the kind k, or "" if there is none. If no version has a path of its own, that is path,
// if it exists.
func (p *replicaPaths) in(k *runtime.Kind, path string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.of != nil:
		return p.of[k.GVK.GroupVersion()]
	case hasPath(k.Type, path):
		return path
	}
	return ""
}
