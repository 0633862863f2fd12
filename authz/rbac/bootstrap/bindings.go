package bootstrap

import rbacv1 "k8s.io/api/rbac/v1"

// systemNamespace is the namespace of the service accounts of the system.
const systemNamespace = "kube-system"

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

func group(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
}

func account(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: name}
}

// bind returns a binding of the ClusterRole of the same name.
func bind(name string, to ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta("", name), Subjects: to, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}
}

// bindIn returns a binding of a Role in a namespace.
func bindIn(namespace, name, role string, to ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: meta(namespace, name), Subjects: to, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
	}
}

// basicBindings returns the bindings of basicRoles.
func basicBindings() []*rbacv1.ClusterRoleBinding {
	const authenticated, unauthenticated = "system:authenticated", "system:unauthenticated"
	return []*rbacv1.ClusterRoleBinding{
		bind("cluster-admin", group("system:masters")),
		bind("system:discovery", group(authenticated)),
		bind("system:basic-user", group(authenticated)),
		bind("system:public-info-viewer", group(authenticated), group(unauthenticated)),
		bind("system:monitoring", group("system:monitoring")),
		bind("system:service-account-issuer-discovery", group("system:serviceaccounts")),
	}
}

// componentBindings returns the bindings of the roles of components and nodes. Nodes have their permissions from an authorizer of
// their own, so that system:node is bound to nobody.
func componentBindings() []*rbacv1.ClusterRoleBinding {
	return []*rbacv1.ClusterRoleBinding{
		bind("system:kube-controller-manager", user("system:kube-controller-manager")),
		bind("system:kube-scheduler", user("system:kube-scheduler")),
		bind("system:volume-scheduler", user("system:kube-scheduler")),
		bind("system:kube-dns", account("kube-dns")),
		bind("system:node"),
		bind("system:node-proxier", user("system:kube-proxy")),
		bind("system:cluster-trust-bundle-discovery", group("system:serviceaccounts")),
	}
}

// controllerBindings returns a binding for each of the roles of controllers, to the service account of the controller's name.
func controllerBindings(roles []*rbacv1.ClusterRole) []*rbacv1.ClusterRoleBinding {
	var all []*rbacv1.ClusterRoleBinding
	for _, r := range roles {
		all = append(all, bind(r.Name, account(r.Name[len(controllerPrefix):])))
	}
	return all
}

// namespacedBindings returns the bindings of namespacedRoles.
func namespacedBindings() []*rbacv1.RoleBinding {
	const reader, leader = "extension-apiserver-authentication-reader", "system::leader-locking-"
	in := func(namespace, controller string) *rbacv1.RoleBinding {
		return bindIn(namespace, controllerPrefix+controller, controllerPrefix+controller, account(controller))
	}
	return []*rbacv1.RoleBinding{
		in("kube-public", "bootstrap-signer"),
		bindIn(systemNamespace, "system::"+reader, reader, user("system:kube-controller-manager"), user("system:kube-scheduler")),
		bindIn(systemNamespace, leader+"kube-controller-manager", leader+"kube-controller-manager",
			user("system:kube-controller-manager"), account("kube-controller-manager"), account("leader-election-controller")),
		bindIn(systemNamespace, leader+"kube-scheduler", leader+"kube-scheduler", user("system:kube-scheduler"), account("kube-scheduler")),
		in(systemNamespace, "bootstrap-signer"),
		in(systemNamespace, "cloud-provider"),
		in(systemNamespace, "token-cleaner"),
	}
}
