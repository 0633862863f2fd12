package bootstrap

import (
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/runtime"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Action is what has to be done with a stored object.
type Action int

// The actions.
const (
	Keep    Action = iota // the object has everything, or must not be changed
	Update                // the object is to be replaced by the result of Reconcile
	Replace               // the object is to be deleted, and the result of Reconcile to be created
)

// Reconcile compares a stored object with the wanted one, which has the same kind and name, and has its defaults. The result shares
// data with both; neither is changed.
func Reconcile(stored, wanted runtime.Object) (result runtime.Object, action Action, err error) {
	switch w := wanted.(type) {
	case *rbacv1.ClusterRole:
		if s, ok := stored.(*rbacv1.ClusterRole); ok {
			return reconcileClusterRole(s, w)
		}
	case *rbacv1.Role:
		if s, ok := stored.(*rbacv1.Role); ok {
			next := *s
			return reconcileRole(&next, &next.ObjectMeta, w.ObjectMeta, &next.Rules, w.Rules, false)
		}
	case *rbacv1.ClusterRoleBinding:
		if s, ok := stored.(*rbacv1.ClusterRoleBinding); ok {
			next := *s
			return reconcileBinding(&next, &next.ObjectMeta, w.ObjectMeta, &next.Subjects, w.Subjects, s.RoleRef == w.RoleRef, w)
		}
	case *rbacv1.RoleBinding:
		if s, ok := stored.(*rbacv1.RoleBinding); ok {
			next := *s
			return reconcileBinding(&next, &next.ObjectMeta, w.ObjectMeta, &next.Subjects, w.Subjects, s.RoleRef == w.RoleRef, w)
		}
	}
	return nil, Keep, fmt.Errorf("a %T cannot be compared with a %T", stored, wanted)
}

func reconcileClusterRole(s, w *rbacv1.ClusterRole) (runtime.Object, Action, error) {
	next := *s
	aggregation, changed := reconcileAggregation(s.AggregationRule, w.AggregationRule)
	next.AggregationRule = aggregation
	return reconcileRole(&next, &next.ObjectMeta, w.ObjectMeta, &next.Rules, w.Rules, changed)
}

// reconcileAggregation returns has with the selectors of want that are missing. A role that is not to be aggregated loses its
// aggregationRule, because a controller would replace its rules.
func reconcileAggregation(has, want *rbacv1.AggregationRule) (next *rbacv1.AggregationRule, changed bool) {
	if want == nil {
		return nil, has != nil
	}
	var selectors []metav1.LabelSelector
	if has != nil {
		selectors = slices.Clip(has.ClusterRoleSelectors)
	}
	for _, w := range want.ClusterRoleSelectors {
		if !slices.ContainsFunc(selectors, func(h metav1.LabelSelector) bool { return equality.Semantic.DeepEqual(h, w) }) {
			selectors, changed = append(selectors, w), true
		}
	}
	return &rbacv1.AggregationRule{ClusterRoleSelectors: selectors}, changed
}

// reconcileRole adds to next, which is a copy of the stored role. changed says that next differs from the stored role already.
func reconcileRole(next runtime.Object, m *metav1.ObjectMeta, wantMeta metav1.ObjectMeta, rules *[]rbacv1.PolicyRule, want []rbacv1.PolicyRule, changed bool) (runtime.Object, Action, error) {
	if isKept(m) {
		return nil, Keep, nil
	}
	missing, _, err := rbac.Uncovered(*rules, want)
	if err != nil {
		return nil, Keep, err
	}
	*rules = append(slices.Clip(*rules), missing...)
	if !complete(m, wantMeta) && len(missing) == 0 && !changed {
		return nil, Keep, nil
	}
	return next, Update, nil
}

// reconcileBinding is reconcileRole for a binding. sameRole says that the stored binding is to the wanted role.
func reconcileBinding(next runtime.Object, m *metav1.ObjectMeta, wantMeta metav1.ObjectMeta, subjects *[]rbacv1.Subject, want []rbacv1.Subject, sameRole bool, whole runtime.Object) (runtime.Object, Action, error) {
	switch {
	case isKept(m):
		return nil, Keep, nil
	case !sameRole:
		return whole, Replace, nil
	}
	changed := complete(m, wantMeta)
	for _, s := range want {
		if !slices.Contains(*subjects, s) {
			*subjects, changed = append(slices.Clip(*subjects), s), true
		}
	}
	if !changed {
		return nil, Keep, nil
	}
	return next, Update, nil
}

// isKept reports whether an object must not be changed.
func isKept(m *metav1.ObjectMeta) bool {
	return m.Annotations[rbacv1.AutoUpdateAnnotationKey] == "false"
}

// complete adds the labels and annotations that are missing, and reports whether there were any.
func complete(m *metav1.ObjectMeta, want metav1.ObjectMeta) bool {
	labels, more := merged(m.Labels, want.Labels)
	annotations, others := merged(m.Annotations, want.Annotations)
	m.Labels, m.Annotations = labels, annotations
	return more || others
}

// merged returns has with the entries of want whose keys it does not have.
func merged(has, want map[string]string) (all map[string]string, more bool) {
	all = has
	for key, value := range want {
		if _, ok := has[key]; ok {
			continue
		}
		if !more {
			all = make(map[string]string, len(has)+len(want))
			for k, v := range has {
				all[k] = v
			}
		}
		all[key], more = value, true
	}
	return all, more
}
