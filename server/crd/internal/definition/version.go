package definition

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// StorageVersion returns a pointer to the storage version inside crd. A valid definition has exactly one. Of several it is the
// first; it is nil if there is none.
func StorageVersion(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

// Version returns a pointer to the version with the name inside crd, or nil if there is none.
func Version(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

// SchemaOf returns the schema inside a version, not a copy, or nil if it has none.
func SchemaOf(version *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if version == nil || version.Schema == nil {
		return nil
	}
	return version.Schema.OpenAPIV3Schema
}
