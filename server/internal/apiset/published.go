package apiset

import (
	"cmp"
	"slices"

	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server/catalogue"
	"github.com/keelson-dev/keelson/server/discovery"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/openapi"
	"github.com/keelson-dev/keelson/server/registry"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// published has the descriptions of a resource in one version. Each is made once and kept while the resource is served, so that a
// change of one resource does not cost time for all others. The set's mu guards it.
type published struct {
	discovery *discovery.Resource // nil: not made yet
	openapi   *openapi.Resource
	metrics   []metrics.Resource
	kind      *catalogue.Kind
}

// discoveryGroups returns the served resources for discovery, in the order in which they were added. The caller holds mu.
func (s *Set) discoveryGroups() []discovery.Group {
	var groups []discovery.Group
	type place struct{ group, version int }
	groupAt, versionAt := map[string]int{}, map[schema.GroupVersion]place{}
	for r := range s.public() {
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

// discovered returns the description of a resource for discovery. The caller holds the set's mu.
func (r *served) discovered() discovery.Resource {
	if r.cached.discovery != nil {
		return *r.cached.discovery
	}
	d := &discovery.Resource{
		Plural: r.Plural, Singular: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind,
		ShortNames: r.ShortNames, Categories: r.Categories, Verbs: r.shownVerbs(), Custom: r.Schema != nil,
	}
	if r.Custom == nil {
		d.StorageKind = r.stored
	}
	for _, name := range r.subNames() {
		d.Subresources = append(d.Subresources, discovery.Subresource{Name: name, Kind: r.subs[name].Kind, Verbs: r.handler.Verbs(name)})
	}
	r.cached.discovery = d
	return *d
}

// openAPIVersions returns the served resources for OpenAPI. The caller holds mu.
func (s *Set) openAPIVersions() []openapi.GroupVersion {
	var out []openapi.GroupVersion
	at, many := map[schema.GroupVersion]int{}, map[schema.GroupVersion]int{}
	for _, r := range s.served {
		many[r.gvr.GroupVersion()]++
	}
	for r := range s.public() {
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

// described returns the description of a resource for OpenAPI. The caller holds the set's mu.
func (r *served) described() openapi.Resource {
	if r.cached.openapi != nil {
		return *r.cached.openapi
	}
	o := &openapi.Resource{
		Plural: r.Plural, Kind: r.gvk, Namespaced: r.Namespaced, Verbs: r.handler.Verbs(""),
		Type: r.GoType, ListType: r.ListType, Docs: r.docs, PatchTypes: r.handler.PatchTypes(""),
		ListKind: r.scheme.Lookup(r.gvk).ListGVK.Kind, SelectableFields: r.fields(),
		ReturnsDeleted: r.handler.ReturnsDeleted(), MediaTypes: r.handler.MediaTypes(), StreamTypes: r.handler.StreamTypes(),
	}
	o.Object, _ = r.Schema.(apischema.Describer)
	for _, name := range r.subNames() {
		sub := openapi.Subresource{Name: name, Kind: r.subs[name].Kind, Verbs: r.handler.Verbs(name), PatchTypes: r.handler.PatchTypes(name)}
		if k := r.scheme.Lookup(sub.Kind); k != nil {
			sub.Type = k.Type
		}
		o.Subresources = append(o.Subresources, sub)
	}
	r.cached.openapi = o
	return *o
}

// fields returns the fields that requests in this version may select by. r.Selectable of a hub has those of all versions.
func (r *served) fields() []string { return r.scheme.Lookup(r.gvk).Fields }

func (r *served) subNames() []string {
	var out []string
	for name := range r.subs {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// HasGoTypes reports whether a group has a resource whose objects have a Go type.
func (s *Set) HasGoTypes(group string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.public() {
		if r.gvr.Group == group && r.handler.HasGoType() {
			return true
		}
	}
	return false
}

// Paths returns the root paths of the served groups and versions.
func (s *Set) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []string{"/apis"}
	for r := range s.public() {
		if r.gvr.Group == "" {
			out = append(out, "/api", "/api/"+r.gvr.Version)
			continue
		}
		out = append(out, "/apis/"+r.gvr.Group, "/apis/"+r.gvr.Group+"/"+r.gvr.Version)
	}
	return out
}

// shownVerbs returns the verbs that discovery shows. The caller holds the set's mu.
func (r *served) shownVerbs() []string {
	verbs := r.handler.Verbs("")
	if len(r.shown) == 0 {
		return verbs
	}
	return slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return !slices.Contains(r.shown, v) })
}

// metered returns the served resources for metrics. The caller holds mu.
func (s *Set) metered() []metrics.Resource {
	out := make([]metrics.Resource, 0, 2*len(s.served))
	for r := range s.public() {
		if r.cached.metrics == nil {
			r.cached.metrics = []metrics.Resource{{GroupVersionResource: r.gvr, Deprecated: r.Deprecated != "", Connect: connectMethods(r.Custom)}}
			for _, name := range r.subNames() {
				r.cached.metrics = append(r.cached.metrics, metrics.Resource{
					GroupVersionResource: r.gvr, Subresource: name, Deprecated: r.Deprecated != "", Connect: connectMethods(r.subs[name].Storage),
				})
			}
		}
		out = append(out, r.cached.metrics...)
	}
	return out
}

// connectMethods returns the HTTP methods of requests that connect to a storage, or nil if it is no registry.Connecter.
func connectMethods(storage any) []string {
	if c, ok := registry.As[registry.Connecter](storage); ok {
		return c.ConnectMethods()
	}
	return nil
}

// catalogued returns the kinds of the catalogue. The caller holds mu.
func (s *Set) catalogued() []catalogue.Kind {
	out := []catalogue.Kind{}
	at := map[schema.GroupVersionKind]int{} // keys are hubs
	for r := range s.public() {
		i, ok := at[r.hub]
		if !ok {
			i = len(out)
			at[r.hub] = i
			out = append(out, catalogue.Kind{})
		}
		kinds := append(out[i].Kinds, r.gvk)
		if r.gvk == r.hub || !ok {
			out[i] = r.catalogued()
		}
		out[i].Kinds = kinds
	}
	slices.SortFunc(out, func(a, b catalogue.Kind) int {
		return cmp.Or(cmp.Compare(a.Resource.Group, b.Resource.Group), cmp.Compare(a.Resource.Resource, b.Resource.Resource))
	})
	return out
}

// catalogued returns the description of a kind by one of its versions, without Kinds. The caller holds the set's mu.
func (r *served) catalogued() catalogue.Kind {
	if r.cached.kind == nil {
		k := &catalogue.Kind{Kind: r.gvk, Resource: r.gvr, Namespaced: r.Namespaced, Singular: r.Singular, ShortNames: r.ShortNames, ListKind: r.gvk.Kind + "List"}
		if kind := r.scheme.Lookup(r.gvk); kind != nil {
			k.ListKind = kind.ListGVK.Kind
		}
		k.Verbs, k.Subresources = r.handler.Verbs(""), r.subNames()
		k.Objects = catalogue.NewObjects(catalogue.Options{
			Kind: r.gvk, Resource: r.gvr.GroupResource(), Namespaced: r.Namespaced, Registry: registryOf(r), Storage: r.Custom, Life: r.life,
			Gate: registry.Gate{Admission: r.policy, Kind: r.hub, Resource: r.hub.GroupVersion().WithResource(r.gvr.Resource)},
		})
		r.cached.kind = k
	}
	return *r.cached.kind
}
