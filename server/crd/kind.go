package crd

import (
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	"github.com/keelson-dev/keelson/server/registry"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// definitionKind returns the kind CustomResourceDefinition for apiextensions.k8s.io/v1, as kube-apiserver serves it.
func definitionKind(validator definition.Validator) server.Resource {
	type crd = *apiextensionsv1.CustomResourceDefinition
	return server.Kind("CustomResourceDefinition", server.KindOptions[crd]{
		ShortNames:    []string{"crd", "crds"},
		Categories:    []string{"api-extensions"},
		ClusterScoped: true,
		Strategy:      definitionStrategy(validator),
		Default:       definition.SetDefaults,
		Columns: []server.Column[crd]{
			{Name: "Scope", Description: "Cluster/Namespaced", Value: func(c crd) any { return string(c.Spec.Scope) }},
			{Name: "Versions", Description: "Served versions", Value: func(c crd) any { return servedVersions(c) }},
			{Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], Value: func(c crd) any {
				return c.CreationTimestamp.UTC().Format(time.RFC3339)
			}},
			{Name: "Group", Priority: 1, Description: "API group", Value: func(c crd) any { return c.Spec.Group }},
			{Name: "Kind", Priority: 1, Description: "CustomResource kind", Value: func(c crd) any { return c.Spec.Names.Kind }},
			{Name: "ShortNames", Priority: 1, Description: "Short names", Value: func(c crd) any { return strings.Join(c.Spec.Names.ShortNames, ",") }},
			{Name: "Established", Type: "boolean", Priority: 1, Description: "Established status", Value: func(c crd) any {
				return definition.IsTrue(c, apiextensionsv1.Established)
			}},
		},
	})
}

// servedVersions lists the served versions, sorted as text, and marks the stored one.
func servedVersions(crd *apiextensionsv1.CustomResourceDefinition) string {
	var versions []string
	for _, v := range crd.Spec.Versions {
		switch {
		case v.Served && v.Storage:
			versions = append(versions, v.Name+"(storage)")
		case v.Served:
			versions = append(versions, v.Name)
		}
	}
	slices.Sort(versions)
	return strings.Join(versions, ",")
}

// definitionStrategy returns the functions of package definition as a strategy for the registry. A DELETE only marks a
// definition; it is removed when its objects are gone.
func definitionStrategy(validator definition.Validator) registry.Strategy[*apiextensionsv1.CustomResourceDefinition] {
	type crd = *apiextensionsv1.CustomResourceDefinition
	return registry.Strategy[crd]{
		PrepareForCreate:       func(_ *registry.Call, c crd) { definition.PrepareForCreate(c) },
		PrepareForUpdate:       func(_ *registry.Call, c, old crd) { definition.PrepareForUpdate(c, old) },
		PrepareForStatusUpdate: func(_ *registry.Call, c, old crd) { definition.PrepareForStatusUpdate(c, old) },

		Validate:             func(call *registry.Call, c crd) field.ErrorList { return validator.Validate(call, c) },
		ValidateUpdate:       func(call *registry.Call, c, old crd) field.ErrorList { return validator.ValidateUpdate(call, c, old) },
		ValidateStatusUpdate: func(_ *registry.Call, c, old crd) field.ErrorList { return definition.ValidateStatusUpdate(c, old) },

		WarnOnCreate: func(_ *registry.Call, c crd) []string { return definition.Warnings(c, nil) },
		WarnOnUpdate: func(_ *registry.Call, c, old crd) []string { return definition.Warnings(c, old) },

		Canonicalize: definition.Canonicalize,
		Terminate:    func(_ *registry.Call, c crd, now metav1.Time) bool { return definition.Terminate(c, now) },

		TerminateAlone:         true,
		StatusMetadata:         true,
		PlainFinalizers:        true,
		RequireResourceVersion: true,
	}
}
