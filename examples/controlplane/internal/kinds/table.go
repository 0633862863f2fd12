package kinds

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a kind as kube-apiserver serves it. Its plural is the one that apimachinery derives from its name. It has /status if
// its type has a status.
type kind struct {
	group, name string
	// versions are those that kube-apiserver serves with --runtime-config=api/all=true, if they can be converted. The first
	// version is stored, and the others are converted to it.
	versions          []string
	cluster           bool // cluster-scoped
	short, categories []string
	path              string // path of the stored objects below /registry; "" means the plural
}

// gvks returns the kind in each of its versions.
func (k kind) gvks() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for _, v := range k.versions {
		all = append(all, schema.GroupVersionKind{Group: k.group, Version: v, Kind: k.name})
	}
	return all
}

// storagePath returns the storage path of kube-apiserver.
func (k kind) storagePath() string {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: k.name})
	return cmp.Or(k.path, plural.Resource)
}

// table returns the kinds of k8s.io/api that kube-apiserver stores, except those of server/builtin: Namespaces, ConfigMaps,
// Secrets, Events, Leases and ServiceAccounts.
func table() []kind {
	return []kind{
		{group: "", name: "Endpoints", versions: []string{"v1"}, path: "services/endpoints", short: []string{"ep"}},
		{group: "", name: "LimitRange", versions: []string{"v1"}, short: []string{"limits"}},
		{group: "", name: "Node", versions: []string{"v1"}, path: "minions", cluster: true, short: []string{"no"}},
		{group: "", name: "PersistentVolume", versions: []string{"v1"}, cluster: true, short: []string{"pv"}},
		{group: "", name: "PersistentVolumeClaim", versions: []string{"v1"}, short: []string{"pvc"}},
		{group: "", name: "Pod", versions: []string{"v1"}, short: []string{"po"}, categories: []string{"all"}},
		{group: "", name: "PodTemplate", versions: []string{"v1"}},
		{group: "", name: "ReplicationController", versions: []string{"v1"}, path: "controllers", short: []string{"rc"}, categories: []string{"all"}},
		{group: "", name: "ResourceQuota", versions: []string{"v1"}, short: []string{"quota"}},
		{group: "", name: "Service", versions: []string{"v1"}, path: "services/specs", short: []string{"svc"}, categories: []string{"all"}},
		{group: "admissionregistration.k8s.io", name: "MutatingAdmissionPolicy", versions: []string{"v1", "v1beta1", "v1alpha1"}, cluster: true, categories: []string{"api-extensions"}},
		{group: "admissionregistration.k8s.io", name: "MutatingAdmissionPolicyBinding", versions: []string{"v1", "v1beta1", "v1alpha1"}, cluster: true, categories: []string{"api-extensions"}},
		{group: "admissionregistration.k8s.io", name: "MutatingWebhookConfiguration", versions: []string{"v1"}, cluster: true, categories: []string{"api-extensions"}},
		{group: "admissionregistration.k8s.io", name: "ValidatingAdmissionPolicy", versions: []string{"v1"}, cluster: true, categories: []string{"api-extensions"}},
		{group: "admissionregistration.k8s.io", name: "ValidatingAdmissionPolicyBinding", versions: []string{"v1"}, cluster: true, categories: []string{"api-extensions"}},
		{group: "admissionregistration.k8s.io", name: "ValidatingWebhookConfiguration", versions: []string{"v1"}, cluster: true, categories: []string{"api-extensions"}},
		{group: "apps", name: "ControllerRevision", versions: []string{"v1"}},
		{group: "apps", name: "DaemonSet", versions: []string{"v1"}, short: []string{"ds"}, categories: []string{"all"}},
		{group: "apps", name: "Deployment", versions: []string{"v1"}, short: []string{"deploy"}, categories: []string{"all"}},
		{group: "apps", name: "ReplicaSet", versions: []string{"v1"}, short: []string{"rs"}, categories: []string{"all"}},
		{group: "apps", name: "StatefulSet", versions: []string{"v1"}, short: []string{"sts"}, categories: []string{"all"}},
		{group: "autoscaling", name: "HorizontalPodAutoscaler", versions: []string{"v2"}, short: []string{"hpa"}, categories: []string{"all"}},
		{group: "batch", name: "CronJob", versions: []string{"v1"}, short: []string{"cj"}, categories: []string{"all"}},
		{group: "batch", name: "Job", versions: []string{"v1"}, categories: []string{"all"}},
		{group: "certificates.k8s.io", name: "CertificateSigningRequest", versions: []string{"v1"}, cluster: true, short: []string{"csr"}},
		{group: "certificates.k8s.io", name: "ClusterTrustBundle", versions: []string{"v1", "v1beta1"}, cluster: true},
		{group: "certificates.k8s.io", name: "PodCertificateRequest", versions: []string{"v1"}},
		{group: "coordination.k8s.io", name: "LeaseCandidate", versions: []string{"v1beta1", "v1alpha2"}},
		{group: "discovery.k8s.io", name: "EndpointSlice", versions: []string{"v1"}},
		{group: "flowcontrol.apiserver.k8s.io", name: "FlowSchema", versions: []string{"v1"}, cluster: true},
		{group: "flowcontrol.apiserver.k8s.io", name: "PriorityLevelConfiguration", versions: []string{"v1"}, cluster: true},
		{group: "internal.apiserver.k8s.io", name: "StorageVersion", versions: []string{"v1alpha1"}, cluster: true},
		{group: "networking.k8s.io", name: "IPAddress", versions: []string{"v1"}, cluster: true, short: []string{"ip"}},
		{group: "networking.k8s.io", name: "Ingress", versions: []string{"v1"}, path: "ingress", short: []string{"ing"}},
		{group: "networking.k8s.io", name: "IngressClass", versions: []string{"v1"}, cluster: true},
		{group: "networking.k8s.io", name: "NetworkPolicy", versions: []string{"v1"}, short: []string{"netpol"}},
		{group: "networking.k8s.io", name: "ServiceCIDR", versions: []string{"v1"}, cluster: true},
		{group: "node.k8s.io", name: "RuntimeClass", versions: []string{"v1"}, cluster: true},
		{group: "policy", name: "PodDisruptionBudget", versions: []string{"v1"}, short: []string{"pdb"}},
		{group: "rbac.authorization.k8s.io", name: "ClusterRole", versions: []string{"v1"}, cluster: true},
		{group: "rbac.authorization.k8s.io", name: "ClusterRoleBinding", versions: []string{"v1"}, cluster: true},
		{group: "rbac.authorization.k8s.io", name: "Role", versions: []string{"v1"}},
		{group: "rbac.authorization.k8s.io", name: "RoleBinding", versions: []string{"v1"}},
		{group: "resource.k8s.io", name: "DeviceClass", versions: []string{"v1", "v1beta2", "v1beta1"}, cluster: true},
		{group: "resource.k8s.io", name: "DeviceTaintRule", versions: []string{"v1", "v1beta2", "v1alpha3"}, cluster: true},
		{group: "resource.k8s.io", name: "ResourceClaim", versions: []string{"v1", "v1beta2", "v1beta1"}},
		{group: "resource.k8s.io", name: "ResourceClaimTemplate", versions: []string{"v1", "v1beta2", "v1beta1"}},
		{group: "resource.k8s.io", name: "ResourcePoolStatusRequest", versions: []string{"v1alpha3"}, cluster: true},
		{group: "resource.k8s.io", name: "ResourceSlice", versions: []string{"v1", "v1beta2", "v1beta1"}, cluster: true},
		{group: "scheduling.k8s.io", name: "PriorityClass", versions: []string{"v1"}, cluster: true, short: []string{"pc"}},
		{group: "storage.k8s.io", name: "CSIDriver", versions: []string{"v1"}, cluster: true},
		{group: "storage.k8s.io", name: "CSINode", versions: []string{"v1"}, cluster: true},
		{group: "storage.k8s.io", name: "CSIStorageCapacity", versions: []string{"v1"}},
		{group: "storage.k8s.io", name: "StorageClass", versions: []string{"v1"}, cluster: true, short: []string{"sc"}},
		{group: "storage.k8s.io", name: "VolumeAttachment", versions: []string{"v1"}, cluster: true},
		{group: "storage.k8s.io", name: "VolumeAttributesClass", versions: []string{"v1"}, cluster: true, short: []string{"vac"}},
		{group: "storagemigration.k8s.io", name: "StorageVersionMigration", versions: []string{"v1", "v1beta1"}, cluster: true},
	}
}
