package rbac

import (
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Static returns the policy of the given roles and bindings: *ClusterRole, *Role, *ClusterRoleBinding and *RoleBinding of
// k8s.io/api/rbac/v1, in any order. It copies the objects and gives them the defaults of a server. An error names an object that
// a server would refuse, or an object that is given twice. As in a server, a binding to a missing role is not an error: it grants
// nothing, and the reasons of decisions name the role.
func Static(objects ...runtime.Object) (*Policy, error) {
	e := (&Policy{}).edit()
	known := map[string]bool{}
	for i, obj := range objects {
		if obj == nil {
			return nil, fmt.Errorf("rbac: object %d is nil", i)
		}
		own := obj.DeepCopyObject()
		if err := Default(own); err != nil {
			return nil, fmt.Errorf("rbac: object %d: %w", i, err)
		}
		what := ""
		switch own := own.(type) {
		case *rbacv1.ClusterRole:
			what = fmt.Sprintf("ClusterRole %q", own.Name)
			e.setRole("", own.Name, own.Rules)
		case *rbacv1.Role:
			what = fmt.Sprintf("Role %q", own.Namespace+"/"+own.Name)
			e.setRole(own.Namespace, own.Name, own.Rules)
		case *rbacv1.ClusterRoleBinding:
			what = fmt.Sprintf("ClusterRoleBinding %q", own.Name)
			e.setBinding(clusterBinding(own))
		case *rbacv1.RoleBinding:
			what = fmt.Sprintf("RoleBinding %q", own.Namespace+"/"+own.Name)
			e.setBinding(roleBinding(own))
		}
		if err := validateAlone(own); err != nil {
			return nil, fmt.Errorf("rbac: %s: %w", what, err)
		}
		if known[what] {
			return nil, fmt.Errorf("rbac: %s is given twice", what)
		}
		known[what] = true
	}
	return e.done(0, defaultMaxMissing), nil
}
