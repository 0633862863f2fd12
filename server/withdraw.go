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
	if err != nil {
		return err
	}
	s.dispose(gone)
	return nil
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
	s.changed()
	return gone, nil
}

// dispose ends the watches of resources that are no longer served, closes their caches, and forgets their kinds, so that
// others may have their names. Requests under way end as they can.
func (s *Server) dispose(gone []*served) {
	var kinds []schema.GroupVersionKind
	for _, r := range gone {
		if r.end != nil {
			r.end()
		}
		if r.own {
			kinds = append(kinds, r.gvk)
		}
	}
	closeCaches(gone)
	s.models.Forget(kinds...)
	s.scheme.Unregister(kinds...)
}
