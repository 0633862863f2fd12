package apiset

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// forget ends the watches of resources that are not served any more, or were not published, and frees their kinds and
// conversions, so that their names can be used again. Other requests that have begun may finish or fail. The caller holds mu, and
// closes the caches.
func (s *Set) forget(gone []*served) {
	var kinds, joined []schema.GroupVersionKind
	for _, r := range gone {
		if r.end != nil {
			r.end()
		}
		if r.scheme != s.scheme { // the scheme is dropped with the resources
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

// uses reports whether a kind is that of a served resource or subresource. The caller holds mu.
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
