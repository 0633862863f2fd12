package definition

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// PrepareForCreate completes a new definition, in place. Its status has nothing but the storage version as the stored version.
// The registry sets the generation.
func PrepareForCreate(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	addStoredVersion(crd)
}

// PrepareForUpdate completes the new state of a definition, in place. The status stays the same, but a new storage version is
// added to the stored versions. The registry sets the generation.
func PrepareForUpdate(crd, old *apiextensionsv1.CustomResourceDefinition) {
	crd.Status = *old.Status.DeepCopy()
	addStoredVersion(crd)
}

// PrepareForStatusUpdate completes the new state of a definition whose status is written, in place. The spec stays the same.
// Unlike status writes of other kinds, this one may also change labels, annotations, finalizers and owners; see StatusMetadata in
// registry.Strategy.
func PrepareForStatusUpdate(crd, old *apiextensionsv1.CustomResourceDefinition) {
	crd.Spec = *old.Spec.DeepCopy()
}

// addStoredVersion adds the storage version to the stored versions if it is missing. Of several storage versions it adds the
// first.
func addStoredVersion(crd *apiextensionsv1.CustomResourceDefinition) {
	if storage := StorageVersion(crd); storage != nil && !slices.Contains(crd.Status.StoredVersions, storage.Name) {
		crd.Status.StoredVersions = append(crd.Status.StoredVersions, storage.Name)
	}
}
