package bootstrap

import rbacv1 "k8s.io/api/rbac/v1"

// namespacedRoles returns the roles in the namespaces of the system.
func namespacedRoles() []*rbacv1.Role {
	return []*rbacv1.Role{
		role("kube-public", "system:controller:bootstrap-signer",
			allow(read, "core", "configmaps"),
			allow("update", "core", "configmaps", "cluster-info"),
			events("create patch update"),
		),
		role("kube-system", "extension-apiserver-authentication-reader",
			allow(read, "core", "configmaps", "extension-apiserver-authentication"),
		),
		role("kube-system", "system::leader-locking-kube-controller-manager",
			allow("create get list update watch", "coordination.k8s.io", "leases"),
			allow("create get list update watch", "coordination.k8s.io", "leasecandidates"),
		),
		role("kube-system", "system::leader-locking-kube-scheduler",
			allow("create get list update watch", "coordination.k8s.io", "leases"),
			allow("create get list update watch", "coordination.k8s.io", "leasecandidates"),
		),
		role("kube-system", "system:controller:bootstrap-signer",
			allow(read, "core", "secrets"),
		),
		role("kube-system", "system:controller:cloud-provider",
			allow("create get list watch", "core", "configmaps"),
		),
		role("kube-system", "system:controller:token-cleaner",
			allow("delete get list watch", "core", "secrets"),
			events("create patch update"),
		),
	}
}
