// Package rbac provides an extension that serves the roles and bindings of rbac.authorization.k8s.io/v1 and authorizes requests
// by them.
//
//	err := srv.Install(rbac.New(rbac.Options{}))
//
// The objects are validated, defaulted and shown in tables as by kube-apiserver. Package authz/rbac documents what they allow. A
// request is allowed if Policy.Authorizer of the server allows it, or if a role allows it. After a change of a role or binding has
// been acknowledged, it applies to every request that begins on that server.
//
// A program without stored roles has them in a file beside it, which is used again when it changes:
//
//	err := srv.Install(rbac.File("roles.yaml", rbac.FileOptions{}))
//
// # First roles
//
// A hook, [HookName], makes the roles and bindings of Options.Bootstrap when the server starts, and completes those that are stored:
// see package authz/rbac/bootstrap. By default they are those of kube-apiserver; bootstrap.Minimal() has those for a server without
// the kinds of Kubernetes. The server is not ready before. Then they replace the default rules: what authenticated and anonymous
// users may read, such as discovery and /healthz, is what the roles system:discovery, system:public-info-viewer and others say, and
// an administrator can change it. Until then, and if Options.Bootstrap is empty, the default rules hold.
//
// Roles and bindings in a namespace are made when the namespace exists. Package builtin makes kube-system and kube-public.
//
// # Escalation
//
// A user cannot give more permissions than the user has:
//
//   - A role may be written by who has all of its permissions in its namespace, by roles that are stored, or may escalate roles or
//     clusterroles of its name. An aggregationRule may be written by who may do everything.
//   - A binding may be written by who has all permissions of its role, or may bind the role.
//   - Members of system:masters may do everything. So may the program itself, when it writes by a registry and not by a request.
//   - An update that changes nothing but finalizers and owners needs no permission.
//
// # Aggregation
//
// A controller sets the rules of each ClusterRole with an aggregationRule to those of the roles that it selects, as the field manager
// clusterrole-aggregation-controller. It runs on every server and writes only rules that differ, so that several servers come to the
// same result.
//
// # Limits
//
//   - A rule that is written is compared with those of the user, unless there are more than some 4,000,000 combinations of verbs,
//     groups, resources and names, for each 64 rules of the user: then it is refused with 403. The refusal names at most 5000
//     permissions that are missing.
//   - A file of roles has at most 3 MiB and 10,000 roles and bindings.
//
// # Differences from kube-apiserver
//
//   - The controller of aggregated roles runs in kube-controller-manager in Kubernetes. It does not make a role again that is deleted
//     while the controller writes it.
//   - A binding to a role of an unknown kind is a mistake (422). For kube-apiserver it is an internal error.
//   - While roles and bindings cannot be read, a write that needs a comparison is refused with 503.
//   - The default rules hold until the first roles are made. Until then kube-apiserver refuses to anonymous users what they
//     allow.
package rbac
