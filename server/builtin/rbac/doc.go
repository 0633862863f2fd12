// Package rbac provides an extension that serves the roles and bindings of rbac.authorization.k8s.io/v1 and authorizes requests
// by them.
//
//	err := srv.Install(rbac.New(rbac.Options{}))
//
// The objects are validated, defaulted and shown in tables as by kube-apiserver. Package authz/rbac documents what they allow. A
// request is allowed if Policy.Authorizer of the server allows it or, if that is nil, the server's default rules allow it, or if
// a role allows it. After a change of a role or binding has been acknowledged, it applies to every request that begins on that
// server.
//
// # Limits
//
//   - There is no check against escalation: a user who may create or update roles or bindings can become administrator. Allow
//     these writes to administrators only; kube-apiserver's verbs escalate and bind have no effect.
//   - There are no roles or bindings until a client creates them: none of kube-apiserver's defaults exists, such as cluster-admin
//     and system:discovery. Members of system:masters may do everything without a role.
//   - There are no access reviews: kubectl auth can-i does not work. To test the permissions of a user, send a request as that
//     user by kubectl --as, which needs the permission to impersonate the user: see package authz/impersonation.
//   - An aggregationRule is validated and stored, but no controller fills in the rules.
package rbac
