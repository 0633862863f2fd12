// Package rbac authorizes requests by roles and bindings, like kube-apiserver: see
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/.
//
// A program that stores no roles declares them in Go:
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
// [Parse] reads them from a file in YAML.
//
// A server that stores them uses an [Authorizer], made by [New], which follows the objects. Package rbac of server/builtin serves
// the four kinds and installs an Authorizer. Each decision is made by a [Policy].
//
// # Escalation and aggregation
//
// [Policy.CheckGrant] says which permissions of new rules a user does not have, so that a server can refuse them; [Uncovered]
// compares rules. [Aggregate] returns the rules of a role that is made of others. Package bootstrap has the roles that
// kube-apiserver makes.
//
// # Cost
//
// A decision looks up the bindings of the user and of each of the user's groups, once among the ClusterRoleBindings and once
// among the RoleBindings of the namespace. Its cost is proportional to the number of these bindings and of the rules of their
// roles, and to the logarithm of the number of all objects.
//
// A Policy keeps the objects in trees. A change of one object makes a new Policy, which copies the tree nodes on the path to the
// object and shares the others with the previous Policy. The cost is proportional to the logarithm of the number of objects,
// times the number of subjects of a binding. Reading all objects costs time proportional to their number. That happens at the
// first reading, and when a [runtime.Reader] does not know the single changes (it sets Reset).
//
// # Missing and stale objects
//
// Roles and bindings only allow, so missing objects allow nothing. An Authorizer has no opinion before its objects are loaded,
// and while it has seen a change that it cannot read, so a deleted role does not continue to allow because the storage fails.
// Without a known change it decides by the objects that it has, whether or not the storage can be reached. A change by another
// server has effect when its event has arrived. An object whose stored bytes cannot be decoded is left out, and the others have
// effect. [Authorizer.Ready] and [Hooks] report these states.
package rbac
