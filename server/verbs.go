package server

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// showVerbs is Host.ShowVerbs.
func (s *Server) showVerbs(i *installation, resource schema.GroupResource, verbs []string) error {
	i.lock(s)
	defer i.unlock(s)
	if i.phase == phaseAbandoned {
		return errAbandoned
	}
	found := false
	for _, r := range s.served {
		if r.gvr.GroupResource() != resource || !i.sees(r) {
			continue
		}
		if found = true; i.collects() {
			i.shown[r] = slices.Clone(verbs)
			continue
		}
		r.shown, r.said.discovery = slices.Clone(verbs), nil
	}
	if !found {
		return fmt.Errorf("server: ShowVerbs: %s is not served; want its group and plural, such as widgets.example.com", resource)
	}
	if !i.collects() {
		s.discovery.Set(s.discoveryGroups())
	}
	return nil
}
