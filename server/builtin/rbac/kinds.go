package rbac

import (
	"strings"
	"time"

	authzrbac "github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	rbacv1 "k8s.io/api/rbac/v1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ClusterRole returns the kind ClusterRole, as kube-apiserver serves it, without a check against escalation: only who may do everything may be
// allowed to write the objects. [New] serves the kind with the check.
func ClusterRole() server.Resource { return clusterRole(nil) }

func clusterRole(e *escalation) server.Resource {
	return server.Kind("ClusterRole", server.KindOptions[*rbacv1.ClusterRole]{
		StoragePath: "clusterroles", ClusterScoped: true, Strategy: strategy(e.permitClusterRole), Columns: roleColumns[*rbacv1.ClusterRole](),
	})
}

// Role returns the kind Role, as kube-apiserver serves it, without a check against escalation: only who may do everything may be
// allowed to write the objects. [New] serves the kind with the check.
func Role() server.Resource { return role(nil) }

func role(e *escalation) server.Resource {
	return server.Kind("Role", server.KindOptions[*rbacv1.Role]{
		StoragePath: "roles", Strategy: strategy(e.permitRole), Columns: roleColumns[*rbacv1.Role](),
	})
}

// ClusterRoleBinding returns the kind ClusterRoleBinding, as kube-apiserver serves it, without a check against escalation: only who may do everything may be
// allowed to write the objects. [New] serves the kind with the check.
func ClusterRoleBinding() server.Resource { return clusterRoleBinding(nil) }

func clusterRoleBinding(e *escalation) server.Resource {
	return server.Kind("ClusterRoleBinding", server.KindOptions[*rbacv1.ClusterRoleBinding]{
		StoragePath: "clusterrolebindings", ClusterScoped: true, Strategy: strategy(e.permitClusterRoleBinding), Default: withDefaults[*rbacv1.ClusterRoleBinding],
		Columns: bindingColumns("clusterRoleBinding", rbacv1beta1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"], func(b *rbacv1.ClusterRoleBinding) (rbacv1.RoleRef, []rbacv1.Subject) {
			return b.RoleRef, b.Subjects
		}),
	})
}

// RoleBinding returns the kind RoleBinding, as kube-apiserver serves it, without a check against escalation: only who may do everything may be
// allowed to write the objects. [New] serves the kind with the check.
func RoleBinding() server.Resource { return roleBinding(nil) }

func roleBinding(e *escalation) server.Resource {
	return server.Kind("RoleBinding", server.KindOptions[*rbacv1.RoleBinding]{
		StoragePath: "rolebindings", Strategy: strategy(e.permitRoleBinding), Default: withDefaults[*rbacv1.RoleBinding],
		Columns: bindingColumns("roleBinding", rbacv1beta1.RoleBinding{}.SwaggerDoc()["roleRef"], func(b *rbacv1.RoleBinding) (rbacv1.RoleRef, []rbacv1.Subject) {
			return b.RoleRef, b.Subjects
		}),
	})
}

// object is one of the four Go types.
type object interface {
	runtime.Object
	metav1.Object
}

func withDefaults[T object](obj T) {
	_ = authzrbac.Default(obj) // it fails only for other kinds
}

// strategy returns the strategy of all four kinds: a PUT may create them.
func strategy[T object](permit func(call *registry.Call, obj, old T) error) registry.Strategy[T] {
	return registry.Strategy[T]{
		Permit:       permit,
		ValidateName: authzrbac.ValidateName,
		Validate:     func(_ *registry.Call, obj T) field.ErrorList { return authzrbac.Validate(obj, nil) },
		ValidateUpdate: func(_ *registry.Call, obj, old T) field.ErrorList {
			return append(validateGenerateName(obj), authzrbac.Validate(obj, old)...)
		},
		Canonicalize:   canonicalize[T],
		NoGeneration:   true,
		CreateOnUpdate: true,
	}
}

// canonicalize replaces empty rules by nil, as kube-apiserver does when it stores them.
func canonicalize[T object](obj T) {
	var rules *[]rbacv1.PolicyRule
	switch obj := any(obj).(type) {
	case *rbacv1.ClusterRole:
		rules = &obj.Rules
	case *rbacv1.Role:
		rules = &obj.Rules
	default:
		return
	}
	if len(*rules) == 0 {
		*rules = nil
	}
}

// validateGenerateName validates the generateName in an update, which may change it.
func validateGenerateName(m metav1.Object) field.ErrorList {
	prefix := m.GetGenerateName()
	if prefix == "" {
		return nil
	}
	var errs field.ErrorList
	for _, why := range authzrbac.ValidateName(prefix, true) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "generateName"), prefix, why))
	}
	return errs
}

// roleColumns returns the columns of roles, which have no columns of their own in kube-apiserver.
func roleColumns[T object]() []server.Column[T] {
	return []server.Column[T]{{
		Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		Value: func(obj T) any { return obj.GetCreationTimestamp().UTC().Format(time.RFC3339) },
	}}
}

// bindingColumns returns the columns of bindings. kube-apiserver describes the role with the text of v1beta1, which lacks a
// sentence.
func bindingColumns[T object](kind, roleDoc string, of func(T) (rbacv1.RoleRef, []rbacv1.Subject)) []server.Column[T] {
	names := func(title, subjectKind string) server.Column[T] {
		return server.Column[T]{
			Name: title, Priority: 1, Description: title + " in the " + kind,
			Value: func(obj T) any {
				_, subjects := of(obj)
				return subjectNames(subjects, subjectKind)
			},
		}
	}
	return []server.Column[T]{
		{Name: "Role", Description: roleDoc, Value: func(obj T) any {
			role, _ := of(obj)
			return role.Kind + "/" + role.Name
		}},
		{Name: "Age", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], Value: func(obj T) any {
			if created := obj.GetCreationTimestamp(); !created.IsZero() {
				return duration.HumanDuration(time.Since(created.Time))
			}
			return "<unknown>"
		}},
		names("Users", rbacv1.UserKind),
		names("Groups", rbacv1.GroupKind),
		names("ServiceAccounts", rbacv1.ServiceAccountKind),
	}
}

// subjectNames returns the names of the subjects of a kind. That of a service account has its namespace before it.
func subjectNames(subjects []rbacv1.Subject, kind string) string {
	var names []string
	for _, s := range subjects {
		if s.Kind != kind {
			continue
		}
		if kind == rbacv1.ServiceAccountKind {
			s.Name = s.Namespace + "/" + s.Name
		}
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}
