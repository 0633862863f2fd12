package definition

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// PrepareForCreate completes a new definition, in place: its status says nothing but that the storage version is stored.
// The generation is for the registry to set.
func PrepareForCreate(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	addStoredVersion(crd)
}

// PrepareForUpdate completes the new state of a definition, in place: the status stays, but that a new storage version is
// stored from now on. The generation is for the registry to set.
func PrepareForUpdate(crd, old *apiextensionsv1.CustomResourceDefinition) {
	crd.Status = *old.Status.DeepCopy()
	addStoredVersion(crd)
}

// PrepareForStatusUpdate completes the new state of a definition whose status is written, in place: the spec stays. Unlike
// those of other kinds such a write may also change labels, annotations, finalizers and owners; see StatusMetadata in
// registry.Strategy.
func PrepareForStatusUpdate(crd, old *apiextensionsv1.CustomResourceDefinition) {
	crd.Spec = *old.Spec.DeepCopy()
}

// addStoredVersion adds the storage version to those that are stored, if it is not among them. Of several it is the first.
func addStoredVersion(crd *apiextensionsv1.CustomResourceDefinition) {
	if storage := StorageVersion(crd); storage != nil && !slices.Contains(crd.Status.StoredVersions, storage.Name) {
		crd.Status.StoredVersions = append(crd.Status.StoredVersions, storage.Name)
	}
}
