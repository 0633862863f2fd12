package bootstrap

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verbs of many rules.
const (
	read  = "get list watch"
	write = "create delete deletecollection patch update"
)

// allow returns a rule for resources of API groups. Several verbs, groups or resources are separated by spaces, and the group "core"
// is the group without a name. Without names the rule is for objects of all names.
func allow(verbs, groups, resources string, names ...string) rbacv1.PolicyRule {
	of := strings.Fields(groups)
	for i := range of {
		if of[i] == "core" {
			of[i] = ""
		}
	}
	return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: of, Resources: strings.Fields(resources), ResourceNames: names}
}

// events returns a rule for the events of both groups.
func events(verbs string) rbacv1.PolicyRule { return allow(verbs, "core events.k8s.io", "events") }

// paths returns a rule for paths.
func paths(verbs string, urls ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), NonResourceURLs: urls}
}

// meta returns the metadata of an object that a server maintains.
func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels: map[string]string{Label: LabelValue}, Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
	}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: meta("", name), Rules: rules}
}

func role(namespace, name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: meta(namespace, name), Rules: rules}
}

// controllerPrefix is the prefix of the names of the roles of controllers.
const controllerPrefix = "system:controller:"

// controller returns the role of a controller.
func controller(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return clusterRole(controllerPrefix+name, rules...)
}

// aggregateLabel returns the label of the roles whose rules an aggregated role has.
func aggregateLabel(name string) string { return rbacv1.GroupName + "/aggregate-to-" + name }

// aggregated returns a role with the rules of the roles with its label. It is part of other aggregated roles.
func aggregated(name string, partOf ...string) *rbacv1.ClusterRole {
	r := clusterRole(name)
	r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
		{MatchLabels: map[string]string{aggregateLabel(name): "true"}},
	}}
	for _, other := range partOf {
		r.Labels[aggregateLabel(other)] = "true"
	}
	return r
}

// aggregatedTo returns a part of an aggregated role.
func aggregatedTo(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	r := clusterRole("system:aggregate-to-"+name, rules...)
	r.Labels[aggregateLabel(name)] = "true"
	return r
}
