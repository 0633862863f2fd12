package discovery

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// legacyGroup returns the description of a group without its resources.
func legacyGroup(g Group) metav1.APIGroup {
	out := metav1.APIGroup{Name: g.Name, Versions: []metav1.GroupVersionForDiscovery{}}
	for _, v := range byPriority(g.Versions) {
		gv := schema.GroupVersion{Group: g.Name, Version: v.Name}
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v.Name})
	}
	if len(out.Versions) > 0 {
		out.PreferredVersion = out.Versions[0]
	}
	return out
}

// byPriority returns versions sorted by maturity: v10, v2, v1, v11beta2, v10beta3, v3alpha1, then all others by name.
func byPriority(versions []Version) []Version {
	sorted := slices.Clone(versions)
	sort.SliceStable(sorted, func(i, j int) bool {
		return version.CompareKubeAwareVersionStrings(sorted[j].Name, sorted[i].Name) < 0
	})
	return sorted
}

// legacyResources returns the description of the resources of one version, with their subresources, sorted by name. The list of
// the core group has no apiVersion, like APIVersions: clients that are older than the field would not accept it.
func legacyResources(gv schema.GroupVersion, resources []Resource) *metav1.APIResourceList {
	out := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(),
		APIResources: []metav1.APIResource{},
	}
	if gv.Group == "" {
		out.APIVersion = ""
	}
	for _, r := range resources {
		if len(r.Verbs) > 0 {
			out.APIResources = append(out.APIResources, legacyResource(gv, r))
		}
		for _, sub := range r.subresources() {
			entry := metav1.APIResource{
				Name: r.Plural + "/" + sub.Name, Namespaced: r.Namespaced, Kind: sub.Kind.Kind, Verbs: sortedVerbs(sub.Verbs),
			}
			entry.Group, entry.Version = foreign(gv, sub.Kind.GroupVersion())
			out.APIResources = append(out.APIResources, entry)
		}
	}
	custom := map[string]bool{}
	for _, r := range resources {
		custom[r.Plural] = r.Custom
	}
	place := func(r metav1.APIResource) string {
		if plural, _, _ := strings.Cut(r.Name, "/"); custom[plural] {
			return plural // followed by its subresources in their order
		}
		return r.Name
	}
	sort.SliceStable(out.APIResources, func(i, j int) bool { return place(out.APIResources[i]) < place(out.APIResources[j]) })
	return out
}

func legacyResource(gv schema.GroupVersion, r Resource) metav1.APIResource {
	entry := metav1.APIResource{
		Name: r.Plural, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind,
		Verbs: r.verbs(), ShortNames: slices.Clone(r.ShortNames), Categories: slices.Clone(r.Categories),
	}
	entry.Group, entry.Version = foreign(gv, r.KindVersion)
	if !r.StorageKind.Empty() {
		entry.StorageVersionHash = storageVersionHash(r.StorageKind)
	}
	return entry
}

// foreign returns the group and version of a kind, or empty strings if these are those of gv.
func foreign(gv, kind schema.GroupVersion) (group, version string) {
	if kind.Empty() || kind == gv {
		return "", ""
	}
	return kind.Group, kind.Version
}

// storageVersionHash returns a hash that clients do not interpret. It has the form that every Kubernetes API server uses, so that
// it does not change when a resource is moved between servers.
func storageVersionHash(gvk schema.GroupVersionKind) string {
	sum := sha256.Sum256([]byte(gvk.Group + "/" + gvk.Version + "/" + gvk.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
