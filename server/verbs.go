package server

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// showVerbs is Host.ShowVerbs.
func (s *Server) showVerbs(resource schema.GroupResource, verbs []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, r := range s.served {
		if r.gvr.GroupResource() == resource {
			r.shown, r.said.discovery, found = slices.Clone(verbs), nil, true
		}
	}
	if !found {
		return fmt.Errorf("server: ShowVerbs: %s is not served; want its group and plural, such as widgets.example.com", resource)
	}
	s.discovery.Set(s.discoveryGroups())
	return nil
}

// shownVerbs are the verbs that discovery shows. The caller holds the server's mu.
func (r *served) shownVerbs() []string {
	verbs := r.handler.Verbs("")
	if len(r.shown) == 0 {
		return verbs
	}
	return slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return !slices.Contains(r.shown, v) })
}
