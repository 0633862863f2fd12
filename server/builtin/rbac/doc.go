// Package rbac serves the roles and bindings of rbac.authorization.k8s.io/v1, and has the server decide by them:
//
//	err := srv.Install(rbac.New(rbac.Options{}))
//
// The objects are validated, given defaults and shown in tables as by kube-apiserver. What they mean is in package rbac of
// authz. A request is allowed if Policy.Authorizer of the server allows it, or, without one, the server's own rules, or else
// a role: of every request that begins after a change of a role was acknowledged, the change decides.
//
// # What is not there yet
//
//   - Users can grant more than they may do: a user who may create or update roles or bindings can become
//     administrator. Let only those write them who are; kube-apiserver's verbs escalate and bind have no effect.
//   - There are no roles or bindings until somebody creates them: none of kube-apiserver's own, such as cluster-admin and
//     system:discovery, is made. Members of system:masters may do everything without.
//   - There are no access reviews and there is no impersonation: kubectl auth can-i and --as do not work. Try a request with
//     the user's token.
//   - An aggregationRule is validated and stored, and no controller fills in the rules.
package rbac
