package apiset

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Registry returns the registry of a stored resource that is served from the point of view of c.
func (s *Set) Registry(c *Change, resource schema.GroupResource) (*registry.Registry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.abandoned() {
		return nil, ErrAbandoned
	}
	for _, r := range s.served {
		if r.gvr.GroupResource() != resource || !c.sees(r) {
			continue
		}
		if reg := registryOf(r); reg != nil {
			return reg, nil
		}
		return nil, fmt.Errorf("server: registry of %s: %w", resource, errNoRegistry)
	}
	return nil, fmt.Errorf("server: registry of %s: no such resource is served; want its group and plural, such as widgets.example.com", resource)
}

// RegistryOfType returns the registry of the served kind whose hub has the Go type t, which is no pointer.
func (s *Set) RegistryOfType(t reflect.Type) (*registry.Registry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *registry.Registry
	for _, r := range s.served {
		reg := registryOf(r)
		if r.pending || r.GoType != t || reg == nil {
			continue
		}
		if r.gvk != r.hub {
			return nil, fmt.Errorf("server: %v is the Go type of %s; a registry has objects of the hub, %s", t, r.gvk, r.hub)
		}
		if found != nil && found != reg {
			return nil, fmt.Errorf("server: several resources have the Go type %v; use Host.Registry with the group and plural of one", t)
		}
		found = reg
	}
	if found == nil {
		return nil, fmt.Errorf("server: no stored resource with the Go type %v is served", t)
	}
	return found, nil
}

// registryOf returns the registry of a resource, also one that the program has given as its Storage. It returns nil if the
// resource has another Storage of its own.
func registryOf(r *served) *registry.Registry {
	if reg, ok := r.Custom.(*registry.Registry); ok {
		return reg
	}
	return r.reg
}

// Stored returns the resources that are stored and served now.
func (s *Set) Stored() []metrics.Stored {
	s.mu.Lock()
	all := slices.DeleteFunc(slices.Clone(s.served), func(r *served) bool { return r.pending })
	s.mu.Unlock()
	var out []metrics.Stored
	for _, r := range all {
		if r.objects == nil {
			continue
		}
		one := metrics.Stored{GroupResource: r.gvr.GroupResource(), Count: s.counter("/registry/" + r.path())}
		if r.cache != nil {
			one.Stats = func() cacher.Stats { return r.cache.Stats() }
		}
		out = append(out, one)
	}
	return out
}

// counter returns a function that counts the objects below a prefix.
func (s *Set) counter(prefix string) func(ctx context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		res, err := s.opts.Backend.Range(ctx, storage.Range{From: prefix + "/", To: prefix + "0", CountOnly: true}) // "0" follows "/"
		return res.Count, err
	}
}

// End forbids all further changes.
func (s *Set) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// Close closes all caches. It is called after End, when no request is in flight, or when the server does not wait for requests
// any longer.
func (s *Set) Close() {
	s.readers.takings.Wait()
	s.mu.Lock()
	all := slices.AppendSeq(slices.Clone(s.served), maps.Keys(s.retired))
	s.mu.Unlock()
	closeCaches(all)
}
