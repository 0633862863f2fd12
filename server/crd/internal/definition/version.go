package definition

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// StorageVersion returns the version in which objects are stored, as it is in crd, not copied. A valid definition has exactly
// one; of several it is the first, and it is nil if there is none.
func StorageVersion(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

// Version returns the version with the name, as it is in crd, not copied, or nil if there is none.
func Version(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

// SchemaOf returns the schema of a version as it is in it, not copied, or nil if it has none.
func SchemaOf(version *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if version == nil || version.Schema == nil {
		return nil
	}
	return version.Schema.OpenAPIV3Schema
}
