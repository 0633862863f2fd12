package runtime

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newMeta returns a new object of one of the types in the two group versions v1 and meta.k8s.io/v1 of metav1, or nil.
func newMeta(gvk schema.GroupVersionKind) Object {
	switch gvk.GroupVersion() {
	case metav1.Unversioned:
		switch gvk.Kind {
		case "Status":
			return &metav1.Status{}
		case "APIVersions":
			return &metav1.APIVersions{}
		case "APIGroup":
			return &metav1.APIGroup{}
		case "APIGroupList":
			return &metav1.APIGroupList{}
		case "APIResourceList":
			return &metav1.APIResourceList{}
		}
		return newOptions(gvk.Kind)
	case metav1.SchemeGroupVersion:
		switch gvk.Kind {
		case "Table":
			return &metav1.Table{}
		case "TableOptions":
			return &metav1.TableOptions{}
		case "PartialObjectMetadata":
			return &metav1.PartialObjectMetadata{}
		case "PartialObjectMetadataList":
			return &metav1.PartialObjectMetadataList{}
		}
		return newOptions(gvk.Kind)
	}
	return nil
}

func (s *Scheme) hasVersion(gv schema.GroupVersion) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for gvk := range s.byGVK {
		if gvk.GroupVersion() == gv {
			return true
		}
	}
	return false
}

// newOptions returns a new object of a type that is in every group version, such as ListOptions, or nil.
func newOptions(kind string) Object {
	switch kind {
	case "ListOptions":
		return &metav1.ListOptions{}
	case "GetOptions":
		return &metav1.GetOptions{}
	case "DeleteOptions":
		return &metav1.DeleteOptions{}
	case "CreateOptions":
		return &metav1.CreateOptions{}
	case "UpdateOptions":
		return &metav1.UpdateOptions{}
	case "PatchOptions":
		return &metav1.PatchOptions{}
	case metav1.WatchEventKind:
		return &metav1.WatchEvent{}
	}
	return nil
}

// reserved reports whether no kind may have this name.
func reserved(gvk schema.GroupVersionKind) bool {
	return newOptions(gvk.Kind) != nil || newMeta(gvk) != nil
}

// metaKind returns the kind of obj if its type is one that every API has, and whether that kind is the same in all versions. For
// any other object gvk is empty.
func metaKind(obj Object) (gvk schema.GroupVersionKind, unversioned bool) {
	v1, meta := metav1.Unversioned.WithKind, metav1.SchemeGroupVersion.WithKind
	switch obj.(type) {
	case *metav1.Status:
		return v1("Status"), true
	case *metav1.APIVersions:
		return v1("APIVersions"), true
	case *metav1.APIGroup:
		return v1("APIGroup"), true
	case *metav1.APIGroupList:
		return v1("APIGroupList"), true
	case *metav1.APIResourceList:
		return v1("APIResourceList"), true
	case *metav1.Table:
		return meta("Table"), false
	case *metav1.TableOptions:
		return meta("TableOptions"), false
	case *metav1.PartialObjectMetadata:
		return meta("PartialObjectMetadata"), false
	case *metav1.PartialObjectMetadataList:
		return meta("PartialObjectMetadataList"), false
	case *metav1.ListOptions:
		return meta("ListOptions"), false
	case *metav1.GetOptions:
		return meta("GetOptions"), false
	case *metav1.DeleteOptions:
		return meta("DeleteOptions"), false
	case *metav1.CreateOptions:
		return meta("CreateOptions"), false
	case *metav1.UpdateOptions:
		return meta("UpdateOptions"), false
	case *metav1.PatchOptions:
		return meta("PatchOptions"), false
	case *metav1.WatchEvent:
		return meta(metav1.WatchEventKind), false
	}
	return schema.GroupVersionKind{}, false
}
