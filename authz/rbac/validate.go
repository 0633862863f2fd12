package rbac

import (
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/runtime"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Default sets the defaults of kube-apiserver in an object of one of the four kinds, in place: the apiGroup of its roleRef and of
// its subjects. An object of another kind is an error.
func Default(obj runtime.Object) error {
	switch obj := obj.(type) {
	case *rbacv1.ClusterRole, *rbacv1.Role:
	case *rbacv1.ClusterRoleBinding:
		defaultBinding(&obj.RoleRef, obj.Subjects)
	case *rbacv1.RoleBinding:
		defaultBinding(&obj.RoleRef, obj.Subjects)
	default:
		return unknownKind(obj)
	}
	return nil
}

func unknownKind(obj runtime.Object) error {
	return fmt.Errorf("a %T is no role or binding of %s", obj, rbacv1.SchemeGroupVersion)
}

func defaultBinding(role *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	if role.APIGroup == "" {
		role.APIGroup = rbacv1.GroupName
	}
	for i := range subjects {
		s := &subjects[i]
		if s.APIGroup == "" && (s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind) {
			s.APIGroup = rbacv1.GroupName
		}
	}
}

// ValidateName returns the errors of the name of a role or binding, or of a prefix of such a name. Unlike the names of most
// kinds, these names may be any single segment of a path.
func ValidateName(name string, _ bool) []string { return content.IsPathSegmentName(name) }

// Validate returns the errors of an object of one of the four kinds, which must have its defaults, in the words and the order of
// kube-apiserver. It does not check metadata. old is the object before an update, of the same kind, or nil.
func Validate(obj, old runtime.Object) field.ErrorList {
	switch obj := obj.(type) {
	case *rbacv1.ClusterRole:
		before, _ := old.(*rbacv1.ClusterRole)
		errs := append(validateRules(obj.Rules, false), validateAggregation(obj, before)...)
		return append(errs, missingVerbs(obj.Rules)...)
	case *rbacv1.Role:
		return append(validateRules(obj.Rules, true), missingVerbs(obj.Rules)...)
	case *rbacv1.ClusterRoleBinding:
		b := bindingRules{role: obj.RoleRef, subjects: obj.Subjects, kinds: []string{"ClusterRole"}}
		if old, ok := old.(*rbacv1.ClusterRoleBinding); ok {
			b.changes = obj.RoleRef != old.RoleRef
		}
		return b.validate()
	case *rbacv1.RoleBinding:
		b := bindingRules{role: obj.RoleRef, subjects: obj.Subjects, kinds: []string{"Role", "ClusterRole"}, namespaced: true}
		if old, ok := old.(*rbacv1.RoleBinding); ok {
			b.changes = obj.RoleRef != old.RoleRef
		}
		return b.validate()
	}
	return field.ErrorList{field.InternalError(nil, unknownKind(obj))}
}

// mostErrors bounds how many errors of a list are collected. An object can have some 100,000, and a response shows 100.
const mostErrors = 1000

func validateRules(rules []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		if len(errs) > mostErrors {
			break
		}
		r := &rules[i]
		if len(r.NonResourceURLs) == 0 && len(r.APIGroups) > 0 && len(r.Resources) > 0 {
			continue
		}
		at := field.NewPath("rules").Index(i)
		if len(r.NonResourceURLs) > 0 {
			urls := at.Child("nonResourceURLs")
			if namespaced {
				errs = append(errs, field.Invalid(urls, r.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
			}
			if len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0 {
				errs = append(errs, field.Invalid(urls, r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
			}
			continue
		}
		if len(r.APIGroups) == 0 {
			errs = append(errs, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(r.Resources) == 0 {
			errs = append(errs, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return errs
}

// missingVerbs returns the errors of rules without verbs. kube-apiserver finds them by the tags of the Go type, after all other
// errors.
func missingVerbs(rules []rbacv1.PolicyRule) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		if len(rules[i].Verbs) == 0 && len(errs) <= mostErrors {
			errs = append(errs, field.Required(field.NewPath("rules").Index(i).Child("verbs"), ""))
		}
	}
	return errs
}

// validateAggregation returns the errors of an aggregation rule. It accepts invalid label values if the selectors of the old role
// have errors already.
func validateAggregation(role, old *rbacv1.ClusterRole) field.ErrorList {
	if role.AggregationRule == nil {
		return nil
	}
	at := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(role.AggregationRule.ClusterRoleSelectors) == 0 {
		return field.ErrorList{field.Required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil")}
	}
	var opts metavalidation.LabelSelectorValidationOptions
	if old != nil && old.AggregationRule != nil {
		for i := range old.AggregationRule.ClusterRoleSelectors {
			if len(metavalidation.ValidateLabelSelector(&old.AggregationRule.ClusterRoleSelectors[i], opts, at)) > 0 {
				opts.AllowInvalidLabelValueInSelector = true
				break
			}
		}
	}
	var errs field.ErrorList
	for i := range role.AggregationRule.ClusterRoleSelectors {
		if len(errs) > mostErrors {
			break
		}
		s := &role.AggregationRule.ClusterRoleSelectors[i]
		errs = append(errs, metavalidation.ValidateLabelSelector(s, opts, at.Index(i))...)
		if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), nil, "invalid label selector."))
		}
	}
	return errs
}

// bindingRules has the fields that both kinds of bindings validate.
type bindingRules struct {
	role       rbacv1.RoleRef
	subjects   []rbacv1.Subject
	kinds      []string // allowed kinds of role
	namespaced bool
	changes    bool // the update changes role
}

// validate returns the errors of a binding. Errors that kube-apiserver finds by the tags of the Go type, about missing names,
// come last. The missing name of a role that the update changes is an exception.
func (b *bindingRules) validate() field.ErrorList {
	at := field.NewPath("roleRef")
	var errs, last field.ErrorList
	if b.role.APIGroup != rbacv1.GroupName {
		errs = append(errs, field.NotSupported(at.Child("apiGroup"), b.role.APIGroup, []string{rbacv1.GroupName}))
	}
	if !slices.Contains(b.kinds, b.role.Kind) {
		errs = append(errs, field.NotSupported(at.Child("kind"), b.role.Kind, b.kinds))
	}
	nameless := field.Required(at.Child("name"), "")
	if b.role.Name == "" && b.changes {
		errs = append(errs, nameless)
	}
	if b.role.Name != "" {
		for _, why := range ValidateName(b.role.Name, false) {
			errs = append(errs, field.Invalid(at.Child("name"), b.role.Name, why))
		}
	}
	for i := range b.subjects {
		if len(errs) > mostErrors {
			break
		}
		at := func() *field.Path { return field.NewPath("subjects").Index(i) }
		errs = append(errs, validateSubject(&b.subjects[i], b.namespaced, at)...)
		if b.subjects[i].Name == "" && len(last) <= mostErrors {
			last = append(last, field.Required(at().Child("name"), ""))
		}
	}
	if b.changes {
		// With Go field names, as kube-apiserver shows it.
		value := struct{ APIGroup, Kind, Name string }{b.role.APIGroup, b.role.Kind, b.role.Name}
		errs = append(errs, field.Invalid(at, value, validation.FieldImmutableErrorMsg))
	}
	if b.role.Name == "" && !b.changes {
		last = append(last, nameless)
	}
	return append(errs, last...)
}

func validateSubject(s *rbacv1.Subject, namespaced bool, at func() *field.Path) field.ErrorList {
	var errs field.ErrorList
	group := rbacv1.GroupName
	switch s.Kind {
	case rbacv1.UserKind, rbacv1.GroupKind:
	case rbacv1.ServiceAccountKind:
		group = ""
		if s.Name != "" {
			for _, why := range validation.ValidateServiceAccountName(s.Name, false) {
				errs = append(errs, field.Invalid(at().Child("name"), s.Name, why))
			}
		}
	default:
		kinds := []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}
		return field.ErrorList{field.NotSupported(at().Child("kind"), s.Kind, kinds)}
	}
	if s.APIGroup != group {
		errs = append(errs, field.NotSupported(at().Child("apiGroup"), s.APIGroup, []string{group}))
	}
	if s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "" && !namespaced {
		errs = append(errs, field.Required(at().Child("namespace"), ""))
	}
	return errs
}

// validateAlone is like Validate, for an object that no server has validated. It also checks the name and the namespace.
func validateAlone(obj runtime.Object) error { return faultsOf(obj).ToAggregate() }

// faultsOf returns the errors of validateAlone.
func faultsOf(obj runtime.Object) field.ErrorList {
	at := field.NewPath("metadata")
	m, err := meta.Accessor(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(at, err)}
	}
	var errs field.ErrorList
	if m.GetName() == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	} else {
		for _, why := range ValidateName(m.GetName(), false) {
			errs = append(errs, field.Invalid(at.Child("name"), m.GetName(), why))
		}
	}
	namespaced := false
	switch obj.(type) {
	case *rbacv1.Role, *rbacv1.RoleBinding:
		namespaced = true
	}
	if namespaced && m.GetNamespace() == "" {
		errs = append(errs, field.Required(at.Child("namespace"), ""))
	}
	if !namespaced && m.GetNamespace() != "" {
		errs = append(errs, field.Forbidden(at.Child("namespace"), "not allowed on this type"))
	}
	return append(errs, Validate(obj, nil)...)
}
