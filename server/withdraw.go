package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// withdraw ends what serve began, in all versions of the resources: either of all of them, or of none and the error says
// why.
func (s *Server) withdraw(resources []schema.GroupResource) error {
	s.mu.Lock()
	gone, err := s.take(resources)
	s.mu.Unlock()
	closeCaches(gone)
	return err
}

// take takes resources out of what is served, and returns them. The caller holds mu.
func (s *Server) take(resources []schema.GroupResource) ([]*served, error) {
	if s.ended {
		return nil, errors.New("server: the server has ended")
	}
	leaves := func(r *served) bool { return slices.Contains(resources, r.gvr.GroupResource()) }
	for _, gr := range resources {
		if !slices.ContainsFunc(s.served, func(r *served) bool { return r.gvr.GroupResource() == gr }) {
			return nil, fmt.Errorf("server: Withdraw: %s is not served; want its group and plural, such as widgets.example.com", gr)
		}
	}
	var gone, left []*served
	routes := map[schema.GroupVersionResource]http.Handler{}
	for _, r := range s.served {
		if !leaves(r) {
			left = append(left, r)
			continue
		}
		gone, routes[r.gvr] = append(gone, r), nil
	}
	for _, r := range gone {
		if i := slices.IndexFunc(left, func(o *served) bool { return o.hub == r.hub }); i >= 0 {
			return nil, fmt.Errorf("server: Withdraw: %s has the same objects as %s; withdraw both", r.gvr.GroupResource(), left[i].gvr.GroupResource())
		}
	}
	s.served = left
	s.router.Set(routes)
	s.forget(gone)
	s.changed() // after all that is theirs is free: who waits for it may serve it again
	return gone, nil
}

// forget ends the watches of resources that are not served, or no longer, and frees their kinds and conversions, so that
// others may have their names. Requests under way end as they can. The caller holds mu, and closes their caches.
func (s *Server) forget(gone []*served) {
	var kinds, joined []schema.GroupVersionKind
	for _, r := range gone {
		if r.end != nil {
			r.end()
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
func (s *Server) uses(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(s.served, func(r *served) bool {
		for _, sub := range r.subs {
			if sub.Kind == gvk {
				return true
			}
		}
		return r.gvk == gvk
	})
}
