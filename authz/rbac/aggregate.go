package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Aggregate returns the rules of a ClusterRole with an aggregationRule: for each of its selectors, the rules of the other roles that
// the selector selects, in the order of their names, each rule once. The result shares data with roles.
func Aggregate(role *rbacv1.ClusterRole, roles []*rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	if role.AggregationRule == nil {
		return role.Rules, nil
	}
	roles = slices.Clone(roles)
	slices.SortFunc(roles, func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
	all := distinct{known: map[string][]int{}}
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, err
		}
		for _, r := range roles {
			if r.Name != role.Name && selector.Matches(labels.Set(r.Labels)) {
				all.add(r.Rules)
			}
		}
	}
	return all.rules, nil
}

// distinct is a list of rules, each of them once.
type distinct struct {
	rules []rbacv1.PolicyRule
	known map[string][]int // indexes of rules by a text that equal rules have
}

func (d *distinct) add(rules []rbacv1.PolicyRule) {
	for _, r := range rules {
		text := ruleText(&r)
		if slices.ContainsFunc(d.known[text], func(i int) bool { return equality.Semantic.DeepEqual(d.rules[i], r) }) {
			continue
		}
		d.known[text] = append(d.known[text], len(d.rules))
		d.rules = append(d.rules, r)
	}
}
