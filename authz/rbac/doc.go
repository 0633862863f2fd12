// Package rbac decides by roles and the bindings that grant them, as kube-apiserver does: see
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/.
//
// A program without stored objects names them in Go:
//
//	policy, err := rbac.Static(
//		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
//			{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"example.com"}, Resources: []string{"airports"}},
//		}},
//		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "readers"},
//			Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "pilots"}},
//			RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "reader"}},
//	)
//
// A server that stores them has an [Authorizer], made by [New], which follows the objects; package rbac of server/builtin
// serves the four kinds and installs one.
//
// # What a decision is
//
// A [Policy] is the four kinds at one revision, and never changes. It allows, or it has no opinion: no rule refuses. A request
// for an object in a namespace is allowed by a ClusterRoleBinding anywhere, or by a RoleBinding in that namespace; a
// request for a cluster-scoped resource or for a path by a ClusterRoleBinding alone. The reason of an Allow names the binding,
// the role and the subject; the reason of no opinion names the roles that the user's bindings refer to and that do not
// exist. Where several bindings allow a request, the reason names one of them.
//
// # Cost
//
// A Policy finds the bindings of a user and of each of the user's groups in two look-ups, one among ClusterRoleBindings and one
// among the RoleBindings of the namespace, and looks at no others. So a decision costs what the bindings of the user and
// the rules of their roles cost, and the logarithm of the number of all objects.
//
// A change of one object copies the path to it and shares the rest with the Policy before: it costs the logarithm of the
// number of objects, times the number of subjects of a binding. Only the first reading, and one after an interruption that
// a [runtime.Reader] cannot bridge, costs as much as there are objects.
//
// # What will bite
//
// Roles and bindings only ever allow, so that what is not known allows nothing. An Authorizer has no opinion before its
// objects are loaded, and none while a change is known that it cannot read: a deleted role never goes on allowing because
// the storage has failed. Without a known change it decides by what it has, whether or not the storage can be reached; a
// change by another server counts when its event has arrived. An object whose stored bytes cannot be decoded is left out,
// and the others count. [Authorizer.Ready] and [Hooks] tell.
package rbac
