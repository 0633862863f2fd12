package runtime

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lookup returns the kind registered under gvk, or nil.
func (s *Scheme) Lookup(gvk schema.GroupVersionKind) *Kind {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byGVK[gvk]
}

// Hub returns the hub version of a kind. It is of another group if the kind is joined to the hub of that group. The result is
// false if the kind is not registered.
func (s *Scheme) Hub(gk schema.GroupKind) (schema.GroupVersionKind, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	gvk, ok := s.hubs[gk]
	return gvk, ok
}
