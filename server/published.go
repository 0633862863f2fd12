package server

import (
	"slices"

	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server/discovery"
	"github.com/keelson-dev/keelson/server/openapi"
)

// discoveryGroups describes what is served for discovery, in the order in which it was added.
func (s *Server) discoveryGroups() []discovery.Group {
	var groups []discovery.Group
	for _, r := range s.served {
		if r.unserved {
			continue
		}
		g := slices.IndexFunc(groups, func(g discovery.Group) bool { return g.Name == r.gvr.Group })
		if g < 0 {
			g, groups = len(groups), append(groups, discovery.Group{Name: r.gvr.Group})
		}
		versions := groups[g].Versions
		v := slices.IndexFunc(versions, func(v discovery.Version) bool { return v.Name == r.gvr.Version })
		if v < 0 {
			v, versions = len(versions), append(versions, discovery.Version{Name: r.gvr.Version})
		}
		d := discovery.Resource{
			Plural: r.plural, Singular: r.singular, Namespaced: r.namespaced, Kind: r.kind,
			ShortNames: r.shortNames, Categories: r.categories, Verbs: r.shownVerbs(), Custom: r.schema != nil,
		}
		if r.custom == nil {
			d.StorageKind = r.stored
		}
		for _, name := range r.subNames() {
			d.Subresources = append(d.Subresources, discovery.Subresource{Name: name, Kind: r.subs[name].Kind, Verbs: r.handler.Verbs(name)})
		}
		versions[v].Resources = append(versions[v].Resources, d)
		groups[g].Versions = versions
	}
	return groups
}

// openAPIVersions describes what is served for OpenAPI.
func (s *Server) openAPIVersions() []openapi.GroupVersion {
	var out []openapi.GroupVersion
	for _, r := range s.served {
		if r.unserved {
			continue
		}
		i := slices.IndexFunc(out, func(v openapi.GroupVersion) bool { return v.Group == r.gvr.Group && v.Version == r.gvr.Version })
		if i < 0 {
			i, out = len(out), append(out, openapi.GroupVersion{Group: r.gvr.Group, Version: r.gvr.Version})
		}
		o := openapi.Resource{
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
		out[i].Resources = append(out[i].Resources, o)
	}
	return out
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
		if r.unserved {
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
