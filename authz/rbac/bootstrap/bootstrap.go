// Package bootstrap has the roles and bindings that a server makes when it starts, and keeps complete.
//
//	own := append(bootstrap.Minimal(), &rbacv1.ClusterRole{...})  // of the program
//	srv.Install(rbac.New(rbac.Options{Bootstrap: own}))           // package server/builtin/rbac
//
// [Kubernetes] returns those of kube-apiserver 1.37; [Minimal] returns those that do not name kinds of Kubernetes. They are described
// in https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings.
//
// # Reconciliation
//
// [Reconcile] compares a stored object with the wanted one, as kube-apiserver does when it starts: permissions, subjects, selectors
// of an aggregationRule, labels and annotations that are missing are added, and what an administrator has added stays, except an
// aggregationRule of a role that is not aggregated. A binding to another role is replaced. An object with the annotation rbac.authorization.kubernetes.io/autoupdate: "false" stays as it is. A
// deleted object comes back at the next start: to take permissions away for good, set the annotation.
//
// # Differences from kube-apiserver
//
//   - Roles and bindings of Kubernetes before 1.14 are not migrated: the rules of an admin, edit or view without an aggregationRule
//     are not copied to system:aggregate-to-admin, -edit or -view, and subjects of system:discovery are not copied to
//     system:public-info-viewer.
//   - The set does not depend on feature gates. It is that of the gates' defaults.
package bootstrap

import (
	"slices"

	"github.com/keelson-dev/keelson/runtime"
)

// Label is the label of all objects of this package, and LabelValue its value.
const (
	Label      = "kubernetes.io/bootstrapping"
	LabelValue = "rbac-defaults"
)

// Kubernetes returns the roles and bindings of kube-apiserver: roles before the bindings to them. The caller owns the objects.
func Kubernetes() []runtime.Object {
	controllers := controllerRoles()
	return slices.Concat(
		objects(basicRoles()), objects(aggregatedRoles()), objects(accessRoles()), objects(namespaceRoles()),
		objects(componentRoles()), objects(nodeRoles()), objects(certificateRoles()), objects(controllers),
		objects(basicBindings()), objects(componentBindings()), objects(controllerBindings(controllers)),
		objects(namespacedRoles()), objects(namespacedBindings()),
	)
}

// Minimal returns the roles and bindings for a server that does not serve the kinds of Kubernetes, all of the cluster:
//
//   - cluster-admin, for the members of system:masters.
//   - system:discovery, system:public-info-viewer, system:basic-user, system:monitoring and
//     system:service-account-issuer-discovery, for the groups of users that kube-apiserver binds them to.
//   - admin, edit and view, which are bound to nobody. Their rules are those of the program's roles with the labels
//     rbac.authorization.k8s.io/aggregate-to-admin, -edit and -view. A role for view is also part of edit, and one for edit of
//     admin. The role system:aggregate-to-admin adds the permission to write Roles and RoleBindings.
func Minimal() []runtime.Object {
	return slices.Concat(objects(basicRoles()), objects(aggregatedRoles()), objects(accessRoles()), objects(basicBindings()))
}

func objects[T runtime.Object](list []T) []runtime.Object {
	all := make([]runtime.Object, len(list))
	for i, obj := range list {
		all[i] = obj
	}
	return all
}
