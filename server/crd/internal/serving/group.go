package serving

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	"github.com/keelson-dev/keelson/server/registry"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// groupOf implements Groups.Of. convert converts between the versions; all has the schemas of all definitions.
func groupOf(crd *apiextensionsv1.CustomResourceDefinition, convert converter, all *library, rows RowLimits) (server.Group, error) {
	hub := definition.StorageVersion(crd)
	if hub == nil {
		return server.Group{}, errors.New("no version is the one that is stored")
	}
	if errs := definition.Unsupported(crd); len(errs) > 0 {
		return server.Group{}, errs.ToAggregate()
	}
	schemas, err := all.schemasOf(crd)
	if err != nil {
		return server.Group{}, err
	}
	group := server.Group{Name: crd.Spec.Group, Scheme: runtime.NewScheme()}
	r := &rules{
		scheme: group.Scheme, namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, hub: hub.Name, versions: map[string]versionRules{},
		resource: schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Status.AcceptedNames.Plural},
	}
	convert = convert.explained(schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Status.AcceptedNames.Kind}, r)
	newest := newest(crd)
	for _, v := range crd.Spec.Versions {
		o := versionOptions(crd, v, newest, rows)
		o.Schema, o.Convert, o.ConvertAll = schemas[v.Name], convert.one, convert.all
		if v.Name == hub.Name {
			o.Hub, o.Strategy = true, r.strategy()
		}
		if convert.converts() && !storedIn(crd, v.Name) {
			o.ShownFields, o.IndexFields = o.SelectableFields, nil // only the conversion knows where they are in a stored object
		}
		r.versions[v.Name] = versionRules{schemas[v.Name], o.Scale}
		group.Versions = append(group.Versions, server.Version{
			Name: v.Name, Resources: []server.Resource{server.Kind(crd.Status.AcceptedNames.Kind, o)},
		})
	}
	return group, nil
}

// storedIn reports whether all objects of a definition are stored in a version.
func storedIn(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return definition.StorageVersion(crd).Name == version &&
		!slices.ContainsFunc(crd.Status.StoredVersions, func(stored string) bool { return stored != version })
}

// versionOptions returns the options of a version, with the names that all versions share.
func versionOptions(crd *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion, newest string, rows RowLimits) server.KindOptions[*unstructured.Unstructured] {
	names := crd.Status.AcceptedNames
	o := server.KindOptions[*unstructured.Unstructured]{
		Plural: names.Plural, Singular: names.Singular, ListKind: names.ListKind,
		ShortNames: slices.Clone(names.ShortNames), Categories: slices.Clone(names.Categories),
		ClusterScoped: crd.Spec.Scope == apiextensionsv1.ClusterScoped,
		Unserved:      !v.Served,
		Deprecated:    deprecation(crd, v, newest),
		Table:         newColumns(v.AdditionalPrinterColumns, rows),
		NoStatus:      v.Subresources == nil || v.Subresources.Status == nil,
		Scale:         scaleOf(v),
	}
	for _, f := range v.SelectableFields {
		path := strings.TrimPrefix(f.JSONPath, ".")
		if !slices.Contains(o.SelectableFields, path) && path != "metadata.name" && path != "metadata.namespace" { // always there
			o.SelectableFields = append(o.SelectableFields, path)
		}
	}
	o.IndexFields = o.SelectableFields
	return o
}

// scaleOf returns the paths of a version's subresource scale, or nil if it has none.
func scaleOf(v apiextensionsv1.CustomResourceDefinitionVersion) *registry.Scale {
	if v.Subresources == nil || v.Subresources.Scale == nil {
		return nil
	}
	s := &registry.Scale{SpecReplicas: v.Subresources.Scale.SpecReplicasPath, StatusReplicas: v.Subresources.Scale.StatusReplicasPath}
	if v.Subresources.Scale.LabelSelectorPath != nil {
		s.LabelSelector = *v.Subresources.Scale.LabelSelectorPath
	}
	return s
}

// newest returns the name of the newest served version that is not deprecated, or "".
func newest(crd *apiextensionsv1.CustomResourceDefinition) string {
	newest := ""
	for _, v := range crd.Spec.Versions {
		if v.Served && !v.Deprecated && (newest == "" || version.CompareKubeAwareVersionStrings(newest, v.Name) < 0) {
			newest = v.Name
		}
	}
	return newest
}

// deprecation returns the warning of a deprecated version, and "" for others. The default warning names the newest served version
// that is not deprecated, if that version is newer.
func deprecation(crd *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion, newest string) string {
	switch {
	case !v.Deprecated:
		return ""
	case v.DeprecationWarning != nil:
		return *v.DeprecationWarning
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", crd.Spec.Group, v.Name, crd.Spec.Names.Kind)
	if newest == "" || version.CompareKubeAwareVersionStrings(v.Name, newest) >= 0 {
		return text
	}
	return text + fmt.Sprintf("; use %s/%s %s", crd.Spec.Group, newest, crd.Spec.Names.Kind)
}
