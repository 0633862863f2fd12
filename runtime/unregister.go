package runtime

import "k8s.io/apimachinery/pkg/runtime/schema"

// RemoveConversions removes the conversions of kinds to and from their hubs. Kinds without a conversion are ignored.
func (s *Scheme) RemoveConversions(kinds ...schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, gvk := range kinds {
		if s.toHub[gvk] == nil {
			continue
		}
		delete(s.toHub, gvk)
		delete(s.fromHub, gvk)
		if hub := s.hubs[gvk.GroupKind()]; hub.Group != gvk.Group { // its hub is in another group, to which only this conversion joined it
			s.hubs[gvk.GroupKind()] = gvk
		}
	}
}

// Unregister removes kinds and their conversions. Objects and Kinds that are in use stay usable. A hub must be removed together
// with all versions that convert to it; otherwise these versions have no hub. Kinds that are not registered are ignored.
func (s *Scheme) Unregister(kinds ...schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, gvk := range kinds {
		k := s.byGVK[gvk]
		if k == nil {
			continue
		}
		delete(s.byGVK, gvk)
		if k.untyped {
			delete(s.lists, k.ListGVK)
		} else {
			delete(s.byType, k.Type)
			if k.ListType != nil {
				delete(s.byType, k.ListType)
			}
		}
		delete(s.toHub, gvk)
		delete(s.fromHub, gvk)
		if s.hubs[gvk.GroupKind()] == gvk || !s.hasKind(gvk.GroupKind()) {
			delete(s.hubs, gvk.GroupKind())
		}
	}
}

// hasKind reports whether any version of a group and kind is left. The caller holds mu.
func (s *Scheme) hasKind(gk schema.GroupKind) bool {
	for gvk := range s.byGVK {
		if gvk.GroupKind() == gk {
			return true
		}
	}
	return false
}
