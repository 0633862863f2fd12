package bootstrap

import rbacv1 "k8s.io/api/rbac/v1"

// basicRoles returns the roles that every server needs, whatever kinds it serves.
func basicRoles() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		clusterRole("cluster-admin",
			allow("*", "*", "*"),
			paths("*", "*"),
		),
		clusterRole("system:discovery",
			paths("get", "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/"),
		),
		clusterRole("system:basic-user",
			allow("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
			allow("create", "authentication.k8s.io", "selfsubjectreviews"),
		),
		clusterRole("system:public-info-viewer",
			paths("get", "/healthz", "/livez", "/readyz", "/version", "/version/"),
		),
		clusterRole("system:monitoring",
			paths("get", "/flagz", "/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*", "/statusz"),
			allow("get", "core", "nodes/metrics"),
		),
		clusterRole("system:service-account-issuer-discovery",
			paths("get", "/.well-known/openid-configuration", "/.well-known/openid-configuration/", "/openid/v1/jwks", "/openid/v1/jwks/"),
		),
	}
}

// aggregatedRoles returns the roles for the users of a namespace. Their rules are those of all roles with a label: see
// aggregatedTo.
func aggregatedRoles() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		aggregated("admin"),
		aggregated("edit", "admin"),
		aggregated("view", "edit"),
	}
}

// accessRoles returns the part of the role admin for the kinds of this group and for reviews.
func accessRoles() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		aggregatedTo("admin",
			allow("create", "authorization.k8s.io", "localsubjectaccessreviews"),
			allow("create delete deletecollection get list patch update watch", "rbac.authorization.k8s.io", "rolebindings roles"),
		),
	}
}

// namespaceRoles returns the parts of the roles edit and view for the kinds of Kubernetes.
func namespaceRoles() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		aggregatedTo("edit",
			allow(read, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
			allow("impersonate", "core", "serviceaccounts"),
			allow(write, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"),
			allow("create", "core", "pods/eviction"),
			allow(write, "core", "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy"),
			allow("create", "core", "serviceaccounts/token"),
			events(write),
			allow(write, "apps", "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale"),
			allow(write, "autoscaling", "horizontalpodautoscalers"),
			allow(write, "batch", "cronjobs jobs"),
			allow(write, "extensions", "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets replicasets/scale replicationcontrollers/scale"),
			allow(write, "policy", "poddisruptionbudgets"),
			allow(write, "networking.k8s.io", "ingresses networkpolicies"),
			allow("create delete deletecollection get list patch update watch", "coordination.k8s.io", "leases"),
			allow(write, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
		),
		aggregatedTo("view",
			allow(read, "core", "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status"),
			allow(read, "core", "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas resourcequotas/status"),
			allow(read, "core", "namespaces"),
			events(read),
			allow(read, "discovery.k8s.io", "endpointslices"),
			allow(read, "apps", "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status"),
			allow(read, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
			allow(read, "batch", "cronjobs cronjobs/status jobs jobs/status"),
			allow(read, "extensions", "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale"),
			allow(read, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
			allow(read, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
			allow(read, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
		),
	}
}
