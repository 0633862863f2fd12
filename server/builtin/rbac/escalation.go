package rbac

import (
	"errors"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	authzrbac "github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/server/registry"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// escalation keeps users from giving more permissions than they have, in the order and the words of kube-apiserver. A nil
// escalation permits everything. Whether a user may escalate or bind is decided by the policy of the request. What the roles of the user
// and the role of a binding allow is read once for each write, in the state of now: a role that was deleted meanwhile gives nothing.
type escalation struct{ roles *authzrbac.Authorizer }

// errAggregation is the error for users who may not use an aggregationRule.
var errAggregation = errors.New("must have cluster-admin privileges to use the aggregationRule")

// permitClusterRole is a registry.Strategy.Permit.
func (e *escalation) permitClusterRole(call *registry.Call, obj, old *rbacv1.ClusterRole) error {
	if e.mayEscalate(call, "clusterroles") || onlyCollected(obj, old) {
		return nil
	}
	held := e.roles.Policy(call)
	if err := grants(call, held, "clusterroles", obj.Name, obj.Rules); err != nil {
		return err
	}
	aggregates := obj.AggregationRule != nil && len(obj.AggregationRule.ClusterRoleSelectors) > 0 ||
		old != nil && old.AggregationRule != nil && len(old.AggregationRule.ClusterRoleSelectors) > 0
	if !aggregates {
		return nil
	}
	all, err := held.HoldsAll(call.User)
	switch {
	case err != nil:
		return apierrors.NewServiceUnavailable(err.Error())
	case !all:
		return apierrors.NewForbidden(rbacv1.Resource("clusterroles"), obj.Name, errAggregation)
	}
	return nil
}

// permitRole is a registry.Strategy.Permit.
func (e *escalation) permitRole(call *registry.Call, obj, old *rbacv1.Role) error {
	if e.mayEscalate(call, "roles") || onlyCollected(obj, old) {
		return nil
	}
	return grants(call, e.roles.Policy(call), "roles", obj.Name, obj.Rules)
}

// permitClusterRoleBinding is a registry.Strategy.Permit.
func (e *escalation) permitClusterRoleBinding(call *registry.Call, obj, old *rbacv1.ClusterRoleBinding) error {
	if e.mayBind(call, obj.RoleRef) || onlyCollected(obj, old) {
		return nil
	}
	return e.binds(call, "clusterrolebindings", obj.Name, obj.RoleRef)
}

// permitRoleBinding is a registry.Strategy.Permit.
func (e *escalation) permitRoleBinding(call *registry.Call, obj, old *rbacv1.RoleBinding) error {
	if e.mayBind(call, obj.RoleRef) || onlyCollected(obj, old) {
		return nil
	}
	return e.binds(call, "rolebindings", obj.Name, obj.RoleRef)
}

// mayEscalate reports whether the user may give any permission by the role that the request names. A POST names none.
func (e *escalation) mayEscalate(call *registry.Call, resource string) bool {
	return e.may(call, authz.Attributes{Verb: "escalate", Resource: resource, Name: call.Name})
}

// mayBind reports whether the user may bind a role without having its permissions.
func (e *escalation) mayBind(call *registry.Call, role rbacv1.RoleRef) bool {
	asked := authz.Attributes{Verb: "bind", Name: role.Name}
	switch role.Kind {
	case "ClusterRole":
		asked.Resource = "clusterroles"
	case "Role":
		asked.Resource = "roles"
	default:
		return e.may(call, authz.Attributes{}) // only who may do everything
	}
	return e.may(call, asked)
}

// may reports whether the user is one of system:masters, or may do something with a resource of this group in the namespace of the
// call. It uses all authorizers of the request.
func (e *escalation) may(call *registry.Call, asked authz.Attributes) bool {
	if e == nil || call.User.InGroup(authn.MastersGroup) {
		return true
	}
	if asked.Verb == "" || call.Policy.Authorizer == nil {
		return false
	}
	asked.User, asked.ResourceRequest, asked.Namespace = call.User, true, call.Namespace
	asked.APIGroup, asked.APIVersion = rbacv1.GroupName, "*"
	verdict, _, err := call.Policy.Authorizer.Authorize(call, asked)
	return verdict == authz.Allow && err == nil
}

// grants returns an error if rules allow more than the user may do by the roles held.
func grants(call *registry.Call, held *authzrbac.Policy, resource, name string, rules []rbacv1.PolicyRule) error {
	err := held.CheckGrant(call.User, call.Namespace, resource, rules)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, authzrbac.ErrUnknown):
		return apierrors.NewServiceUnavailable(err.Error())
	}
	return apierrors.NewForbidden(rbacv1.Resource(resource), name, err)
}

// binds returns an error if a role does not exist, or if it allows more than the user may do. A kind that is not valid is left to
// the validation; in kube-apiserver it is an internal error.
func (e *escalation) binds(call *registry.Call, resource, name string, role rbacv1.RoleRef) error {
	switch {
	case role.Kind != "ClusterRole" && role.Kind != "Role":
		return nil
	case role.Kind == "Role" && call.Namespace == "":
		return apierrors.NewBadRequest("Namespace parameter required.")
	case role.Name == "":
		return apierrors.NewBadRequest("Name parameter required.")
	}
	held := e.roles.Policy(call)
	rules, ok, err := held.RulesOfRole(role, call.Namespace)
	switch {
	case err != nil:
		return apierrors.NewServiceUnavailable(err.Error())
	case !ok:
		return apierrors.NewNotFound(rbacv1.Resource(resource), role.Name) // of this resource, as in kube-apiserver
	}
	return grants(call, held, resource, name, rules)
}

// onlyCollected reports whether an update changes nothing but what a garbage collector changes: finalizers and owners. Such an
// update, and one that changes nothing, needs no permissions. As in kube-apiserver, the new state must have the uid, the
// creationTimestamp and the resourceVersion.
func onlyCollected[T object](obj, old T) bool {
	if any(old) == any(*new(T)) {
		return false
	}
	own := obj.DeepCopyObject().(T)
	own.GetObjectKind().SetGroupVersionKind(old.GetObjectKind().GroupVersionKind())
	own.SetOwnerReferences(old.GetOwnerReferences())
	own.SetFinalizers(old.GetFinalizers())
	own.SetSelfLink(old.GetSelfLink())
	own.SetManagedFields(old.GetManagedFields())
	return equality.Semantic.DeepEqual(own, old)
}
