package rbac

import (
	"fmt"

	"github.com/tidwall/btree"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Dump returns the whole index of a policy.
func Dump(p *Policy) map[string]string {
	out := map[string]string{}
	scopeDump := func(namespace string, s *scope) {
		out[namespace+" scope"] = ""
		s.roles.Scan(func(name string, r []rbacv1.PolicyRule) bool {
			out[fmt.Sprintf("%s role %q", namespace, name)] = fmt.Sprint(r)
			return true
		})
		s.bindings.Scan(func(name string, b *binding) bool {
			out[fmt.Sprintf("%s binding %q", namespace, name)] = fmt.Sprintf("%+v", *b)
			return true
		})
		for kind, m := range map[string]*btree.Map[string, *grants]{"user": s.users, "group": s.groups} {
			m.Scan(func(name string, g *grants) bool {
				key := fmt.Sprintf("%s %s %q", namespace, kind, name)
				out[key] = ""
				g.of.Scan(func(binding string, one grant) bool {
					out[key] += fmt.Sprintf("%s %d of %+v; ", binding, one.subject, *one.binding)
					return true
				})
				return true
			})
		}
	}
	if p.cluster != nil {
		scopeDump("", p.cluster)
	}
	p.namespaces.Scan(func(namespace string, s *scope) bool {
		scopeDump(namespace, s)
		return true
	})
	return out
}
