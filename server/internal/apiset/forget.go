package apiset

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// forget ends the watches of resources that are not served, or no longer, and frees their kinds and conversions, so that
// others may have their names. Requests under way end as they can. The caller holds mu, and sees to their caches.
func (s *Set) forget(gone []*served) {
	var kinds, joined []schema.GroupVersionKind
	for _, r := range gone {
		if r.end != nil {
			r.end()
		}
		if r.scheme != s.scheme { // which goes with them
			continue
		}
		for _, gvk := range r.own {
			if !s.uses(gvk) {
				kinds = append(kinds, gvk)
			}
		}
		if r.joined {
			joined = append(joined, r.gvk)
		}
	}
	s.models.Forget(kinds...)
	s.scheme.RemoveConversions(joined...)
	s.scheme.Unregister(kinds...)
}

// uses reports whether a kind is that of something served, or of a subresource. The caller holds mu.
func (s *Set) uses(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(s.served, func(r *served) bool {
		for _, sub := range r.subs {
			if sub.Kind == gvk {
				return true
			}
		}
		return r.gvk == gvk
	})
}
