package discovery

import (
	"slices"
	"sort"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// aggregatedKind returns the kind that a client names in its Accept header to get aggregated discovery.
func aggregatedKind() schema.GroupVersionKind {
	return apidiscovery.SchemeGroupVersion.WithKind("APIGroupDiscoveryList")
}

// aggregatedList returns an empty list of groups.
func aggregatedList() *apidiscovery.APIGroupDiscoveryList {
	gvk := aggregatedKind()
	return &apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: gvk.Kind, APIVersion: gvk.GroupVersion().String()},
		Items:    []apidiscovery.APIGroupDiscovery{},
	}
}

// aggregateGroup returns the description of a group with all its resources.
func aggregateGroup(g Group) apidiscovery.APIGroupDiscovery {
	item := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
	for _, v := range byPriority(g.Versions) {
		item.Versions = append(item.Versions, aggregateVersion(g.Name, v))
	}
	return item
}

func aggregateVersion(group string, v Version) apidiscovery.APIVersionDiscovery {
	gv := schema.GroupVersion{Group: group, Version: v.Name}
	out := apidiscovery.APIVersionDiscovery{Version: v.Name, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
	for _, r := range v.Resources {
		if len(r.Verbs) == 0 && len(r.Subresources) == 0 {
			continue
		}
		out.Resources = append(out.Resources, aggregateResource(gv, r))
	}
	sort.SliceStable(out.Resources, func(i, j int) bool { return out.Resources[i].Resource < out.Resources[j].Resource })
	return out
}

func aggregateResource(gv schema.GroupVersion, r Resource) apidiscovery.APIResourceDiscovery {
	out := apidiscovery.APIResourceDiscovery{
		Resource: r.Plural, SingularResource: r.Singular, Scope: apidiscovery.ScopeCluster,
		ResponseKind: r.responseKind(gv, r.KindVersion.WithKind(r.Kind)),
		Verbs:        r.verbs(),
		ShortNames:   slices.Clone(r.ShortNames), Categories: slices.Clone(r.Categories),
	}
	if r.Namespaced {
		out.Scope = apidiscovery.ScopeNamespace
	}
	if len(r.Verbs) == 0 { // only its subresources are served; clients skip a resource without a kind
		out.ResponseKind = &metav1.GroupVersionKind{}
	}
	for _, sub := range r.subresources() {
		out.Subresources = append(out.Subresources, apidiscovery.APISubresourceDiscovery{
			Subresource: sub.Name, ResponseKind: r.responseKind(gv, sub.Kind), Verbs: sortedVerbs(sub.Verbs),
		})
	}
	return out
}

// responseKind returns a kind with its group and version. As in kube-apiserver, a kind with a Go type has them only if they are not
// those of the resource; clients know the rule.
func (r Resource) responseKind(gv schema.GroupVersion, kind schema.GroupVersionKind) *metav1.GroupVersionKind {
	switch own := kind.GroupVersion().Empty() || kind.GroupVersion() == gv; {
	case own && r.Custom:
		kind = gv.WithKind(kind.Kind)
	case own:
		kind = schema.GroupVersionKind{Kind: kind.Kind}
	}
	return &metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
}
