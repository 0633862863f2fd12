package crd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	celrules "github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd/definition"
	"github.com/keelson-dev/keelson/server/registry"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// groupOf makes what a definition defines: a group of one resource in all its versions, those that are stored and not
// served included, in a scheme of its own, under the names that were accepted. Objects are stored in the version that the
// definition says. convert is the program's conversion between the versions, nil for none; compiler compiles the rules of
// schemas; before are the schemas of an earlier state of the definition, and those that it has now come back. Nothing of crd is kept.
//
// It is an error if the definition is one that cannot be served, which is not told to whoever wrote it: only one that was stored
// by somebody else is.
func groupOf(crd *apiextensionsv1.CustomResourceDefinition, convert runtime.ConvertUntyped, compiler *celrules.Compiler, before schemaSet) (server.Group, schemaSet, error) {
	fail := func(err error) (server.Group, schemaSet, error) {
		return server.Group{}, nil, fmt.Errorf("definition %s cannot be served: %w", crd.Name, err)
	}
	hub := definition.StorageVersion(crd)
	if hub == nil {
		return fail(errors.New("no version is the one that is stored"))
	}
	if errs := definition.Unsupported(crd); len(errs) > 0 {
		return fail(errs.ToAggregate())
	}
	schemas, set, err := schemasOf(crd, compiler, before)
	if err != nil {
		return fail(err)
	}
	if convert != nil {
		convert = explained(schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Status.AcceptedNames.Kind}, convert, schemas)
	}
	group := server.Group{Name: crd.Spec.Group, Scheme: runtime.NewScheme()}
	r := &rules{
		scheme: group.Scheme, hub: hub.Name, versions: map[string]versionRules{},
		resource: schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Status.AcceptedNames.Plural},
	}
	for _, v := range crd.Spec.Versions {
		o := versionOptions(crd, v)
		o.Schema, o.Convert = schemas[v.Name], convert
		switch {
		case v.Name == hub.Name:
			o.Hub, o.Strategy = true, r.strategy()
		case convert != nil:
			onlyWhereStored(&o, schemas[hub.Name])
		}
		r.versions[v.Name] = versionRules{schemas[v.Name], o.Scale}
		group.Versions = append(group.Versions, server.Version{
			Name: v.Name, Resources: []server.Resource{server.Kind(crd.Status.AcceptedNames.Kind, o)},
		})
	}
	return group, set, nil
}

// onlyWhereStored takes away what a version cannot have because it is made of what is stored by the program's function: fields
// to select by, which are read in what is stored, and a scale whose paths that does not have.
func onlyWhereStored(o *server.KindOptions[*unstructured.Unstructured], stored *objectSchema) {
	o.SelectableFields, o.IndexFields = nil, nil
	if o.Scale == nil {
		return
	}
	for _, path := range []string{o.Scale.SpecReplicas, o.Scale.StatusReplicas, o.Scale.LabelSelector} {
		if _, _, err := stored.structure().At(path, false); err != nil {
			o.Scale = nil
			return
		}
	}
}

// versionOptions are what a version says of itself, and the names that all versions share.
func versionOptions(crd *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion) server.KindOptions[*unstructured.Unstructured] {
	names := crd.Status.AcceptedNames
	o := server.KindOptions[*unstructured.Unstructured]{
		Plural: names.Plural, Singular: names.Singular, ListKind: names.ListKind,
		ShortNames: slices.Clone(names.ShortNames), Categories: slices.Clone(names.Categories),
		ClusterScoped: crd.Spec.Scope == apiextensionsv1.ClusterScoped,
		Unserved:      !v.Served,
		Deprecated:    deprecation(crd, v),
		Table:         newColumns(v.AdditionalPrinterColumns),
		NoStatus:      v.Subresources == nil || v.Subresources.Status == nil,
		Scale:         scaleOf(v),
	}
	for _, f := range v.SelectableFields {
		path := strings.TrimPrefix(f.JSONPath, ".")
		if !slices.Contains(o.SelectableFields, path) && path != "metadata.name" && path != "metadata.namespace" { // which are anyway
			o.SelectableFields = append(o.SelectableFields, path)
		}
	}
	o.IndexFields = o.SelectableFields
	return o
}

// scaleOf returns where a version has what its subresource scale shows, nil for none.
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

// deprecation is the warning of a version that is deprecated, "" for another. Without one of its own it names the newest version
// that is served, newer, and not deprecated itself.
func deprecation(crd *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion) string {
	switch {
	case !v.Deprecated:
		return ""
	case v.DeprecationWarning != nil:
		return *v.DeprecationWarning
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", crd.Spec.Group, v.Name, crd.Spec.Names.Kind)
	newest := v.Name
	for _, other := range crd.Spec.Versions {
		if other.Served && !other.Deprecated && version.CompareKubeAwareVersionStrings(newest, other.Name) < 0 {
			newest = other.Name
		}
	}
	if newest == v.Name {
		return text
	}
	return text + fmt.Sprintf("; use %s/%s %s", crd.Spec.Group, newest, crd.Spec.Names.Kind)
}

// groupOf makes what a definition defines: see the function of that name. The schemas of a definition are kept until it is
// forgotten.
func (w *wing) groupOf(crd *apiextensionsv1.CustomResourceDefinition) (server.Group, error) {
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Status.AcceptedNames.Kind}
	group, set, err := groupOf(crd, w.opts.Conversions[kind], w.compiler, w.schemas[crd.Name])
	if err == nil {
		w.schemas[crd.Name] = set
	}
	return group, err
}
