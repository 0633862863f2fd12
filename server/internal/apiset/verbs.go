package apiset

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ShowVerbs implements server.Host.ShowVerbs: discovery shows only those of verbs that the resource has, in all its versions.
// Without verbs it shows all.
func (s *Set) ShowVerbs(c *Change, resource schema.GroupResource, verbs []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.abandoned() {
		return ErrAbandoned
	}
	found := false
	for _, r := range s.served {
		if r.gvr.GroupResource() != resource || !c.sees(r) {
			continue
		}
		if found = true; c.collects() {
			c.shown[r] = slices.Clone(verbs)
			continue
		}
		r.shown, r.cached.discovery = slices.Clone(verbs), nil
	}
	if !found {
		return fmt.Errorf("server: ShowVerbs: %s is not served; want its group and plural, such as widgets.example.com", resource)
	}
	if !c.collects() {
		s.opts.Discovery.Set(s.discoveryGroups())
	}
	return nil
}
