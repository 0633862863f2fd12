package server

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// isClusterScoped reports whether a kind of the groups of Kubernetes is cluster-scoped, which its Go type does not show: see
// https://kubernetes.io/docs/reference/kubernetes-api/. For other groups it returns false.
func isClusterScoped(gk schema.GroupKind) bool {
	return slices.Contains(clusterScoped(gk.Group), gk.Kind)
}

func clusterScoped(group string) []string {
	switch group {
	case "":
		return []string{"ComponentStatus", "Namespace", "Node", "PersistentVolume"}
	case "admissionregistration.k8s.io":
		return []string{
			"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
			"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
		}
	case "apiextensions.k8s.io":
		return []string{"CustomResourceDefinition"}
	case "apiregistration.k8s.io":
		return []string{"APIService"}
	case "certificates.k8s.io":
		return []string{"CertificateSigningRequest", "ClusterTrustBundle"}
	case "flowcontrol.apiserver.k8s.io":
		return []string{"FlowSchema", "PriorityLevelConfiguration"}
	case "internal.apiserver.k8s.io":
		return []string{"StorageVersion"}
	case "networking.k8s.io":
		return []string{"IPAddress", "IngressClass", "ServiceCIDR"}
	case "node.k8s.io":
		return []string{"RuntimeClass"}
	case "policy":
		return []string{"PodSecurityPolicy"}
	case "rbac.authorization.k8s.io":
		return []string{"ClusterRole", "ClusterRoleBinding"}
	case "resource.k8s.io":
		return []string{"DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "ResourceSlice"}
	case "scheduling.k8s.io":
		return []string{"PriorityClass"}
	case "storage.k8s.io":
		return []string{"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"}
	case "storagemigration.k8s.io":
		return []string{"StorageVersionMigration"}
	}
	return nil
}
