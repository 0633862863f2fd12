package registry

import (
	"fmt"
	"sync"

	"github.com/keelson-dev/keelson/runtime"
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
// for themselves whether they have a status that is written apart, and a scale, at paths of that version; nil: none.
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

// replicaPaths are where each version that says so has its replicas, for all registries of the same objects.
type replicaPaths struct {
	mu sync.Mutex                     // guards of
	of map[schema.GroupVersion]string // as Scale.SpecReplicas
}

func (p *replicaPaths) set(version schema.GroupVersion, path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[schema.GroupVersion]string{}
	}
	p.of[version] = path
}

// in returns where the kind k has the replicas, "" for nowhere. Without paths of its own it has them at path, if at all.
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
