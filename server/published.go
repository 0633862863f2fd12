package server

import (
	"slices"

	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server/discovery"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/openapi"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// published is what is said of a resource in one version, which is made once: it stays while the resource is served, and a change of
// one resource should not cost what all of them do. The server's mu guards it.
type published struct {
	discovery *discovery.Resource // nil: it is to be made
	openapi   *openapi.Resource
	metrics   []metrics.Resource
	kind      *ServedKind
}

// discoveryGroups describes what is served for discovery, in the order in which it was added. The caller holds mu.
func (s *Server) discoveryGroups() []discovery.Group {
	var groups []discovery.Group
	type place struct{ group, version int }
	groupAt, versionAt := map[string]int{}, map[schema.GroupVersion]place{}
	for _, r := range s.served {
		if r.unserved || r.pending {
			continue
		}
		g, ok := groupAt[r.gvr.Group]
		if !ok {
			g, groups = len(groups), append(groups, discovery.Group{Name: r.gvr.Group})
			groupAt[r.gvr.Group] = g
		}
		at, ok := versionAt[r.gvr.GroupVersion()]
		if !ok {
			at = place{g, len(groups[g].Versions)}
			groups[g].Versions = append(groups[g].Versions, discovery.Version{Name: r.gvr.Version})
			versionAt[r.gvr.GroupVersion()] = at
		}
		version := &groups[at.group].Versions[at.version]
		version.Resources = append(version.Resources, r.discovered())
	}
	return groups
}

// discovered describes a resource for discovery. The caller holds the server's mu.
func (r *served) discovered() discovery.Resource {
	if r.said.discovery != nil {
		return *r.said.discovery
	}
	d := &discovery.Resource{
		Plural: r.plural, Singular: r.singular, Namespaced: r.namespaced, Kind: r.kind,
		ShortNames: r.shortNames, Categories: r.categories, Verbs: r.shownVerbs(), Custom: r.schema != nil,
	}
	if r.custom == nil {
		d.StorageKind = r.stored
	}
	for _, name := range r.subNames() {
		d.Subresources = append(d.Subresources, discovery.Subresource{Name: name, Kind: r.subs[name].Kind, Verbs: r.handler.Verbs(name)})
	}
	r.said.discovery = d
	return *d
}

// openAPIVersions describes what is served for OpenAPI. The caller holds mu.
func (s *Server) openAPIVersions() []openapi.GroupVersion {
	var out []openapi.GroupVersion
	at, many := map[schema.GroupVersion]int{}, map[schema.GroupVersion]int{}
	for _, r := range s.served {
		many[r.gvr.GroupVersion()]++
	}
	for _, r := range s.served {
		if r.unserved || r.pending {
			continue
		}
		i, ok := at[r.gvr.GroupVersion()]
		if !ok {
			i, out = len(out), append(out, openapi.GroupVersion{
				Group: r.gvr.Group, Version: r.gvr.Version, Resources: make([]openapi.Resource, 0, many[r.gvr.GroupVersion()]),
			})
			at[r.gvr.GroupVersion()] = i
		}
		out[i].Resources = append(out[i].Resources, r.described())
	}
	return out
}

// described describes a resource for OpenAPI. The caller holds the server's mu.
func (r *served) described() openapi.Resource {
	if r.said.openapi != nil {
		return *r.said.openapi
	}
	o := &openapi.Resource{
		Plural: r.plural, Kind: r.gvk, Namespaced: r.namespaced, Verbs: r.handler.Verbs(""),
		Type: r.goType, ListType: r.listType, Docs: r.docs, PatchTypes: r.handler.PatchTypes(""),
		ListKind: r.scheme.Lookup(r.gvk).ListGVK.Kind, SelectableFields: r.fields(),
		ReturnsDeleted: r.handler.ReturnsDeleted(), MediaTypes: r.handler.MediaTypes(), StreamTypes: r.handler.StreamTypes(),
	}
	o.Object, _ = r.schema.(apischema.Describer)
	for _, name := range r.subNames() {
		sub := openapi.Subresource{Name: name, Kind: r.subs[name].Kind, Verbs: r.handler.Verbs(name), PatchTypes: r.handler.PatchTypes(name)}
		if k := r.scheme.Lookup(sub.Kind); k != nil {
			sub.Type = k.Type
		}
		o.Subresources = append(o.Subresources, sub)
	}
	r.said.openapi = o
	return *o
}

// fields are those that requests in this version may select by; those in r.selectable are those of all versions.
func (r *served) fields() []string { return r.scheme.Lookup(r.gvk).Fields }

func (r *served) subNames() []string {
	var out []string
	for name := range r.subs {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// apiPaths lists the roots of what is served.
func (s *Server) apiPaths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []string{"/apis"}
	for _, r := range s.served {
		if r.unserved || r.pending {
			continue
		}
		if r.gvr.Group == "" {
			out = append(out, "/api", "/api/"+r.gvr.Version)
			continue
		}
		out = append(out, "/apis/"+r.gvr.Group, "/apis/"+r.gvr.Group+"/"+r.gvr.Version)
	}
	return out
}

// shownVerbs are the verbs that discovery shows. The caller holds the server's mu.
func (r *served) shownVerbs() []string {
	verbs := r.handler.Verbs("")
	if len(r.shown) == 0 {
		return verbs
	}
	return slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return !slices.Contains(r.shown, v) })
}
