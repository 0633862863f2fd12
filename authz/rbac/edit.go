package rbac

import (
	"github.com/tidwall/btree"
	rbacv1 "k8s.io/api/rbac/v1"
)

// An edit makes a new Policy from another one, which it does not change. It copies the maps that it changes, each once; the copy
// of a map shares the unchanged nodes. A scope or grants whose field by is the edit are copies already. An edit must not be used
// concurrently, and not after done.
type edit struct{ p *Policy }

// degree is half of the maximum number of entries in a node of a map. A change copies one node for each level. Small nodes make
// changes cheap, large nodes make look-ups cheap.
const degree = 8

func newMap[V any]() *btree.Map[string, V] { return btree.NewMap[string, V](degree) }

// edit returns an edit that begins with the content of p.
func (p *Policy) edit() *edit {
	next := *p
	if next.namespaces == nil {
		next.namespaces = newMap[*scope]()
	} else {
		next.namespaces = next.namespaces.Copy()
	}
	return &edit{&next}
}

// done returns the Policy at a revision. It removes the Policy from the edit, because the scopes that refer to the edit would
// keep the Policy in memory.
func (e *edit) done(revision int64, missing int) *Policy {
	p := e.p
	e.p = nil
	p.loaded, p.revision, p.missing = true, revision, missing
	return p
}

// find returns the scope of a namespace for reading; "" is the cluster scope. It returns nil if the scope is empty.
func (e *edit) find(namespace string) *scope {
	if namespace == "" {
		return e.p.cluster
	}
	s, _ := e.p.namespaces.Get(namespace)
	return s
}

// scope returns the scope of a namespace for changes.
func (e *edit) scope(namespace string) *scope {
	s := e.find(namespace)
	switch {
	case s == nil:
		s = &scope{e, newMap[[]rbacv1.PolicyRule](), newMap[*binding](), newMap[*grants](), newMap[*grants]()}
	case s.by != e:
		s = &scope{e, s.roles.Copy(), s.bindings.Copy(), s.users.Copy(), s.groups.Copy()}
	default:
		return s
	}
	e.put(namespace, s)
	return s
}

func (e *edit) put(namespace string, s *scope) {
	switch {
	case namespace == "":
		e.p.cluster = s
	case s == nil:
		e.p.namespaces.Delete(namespace)
	default:
		e.p.namespaces.Set(namespace, s)
	}
}

// forget removes a scope if it is empty.
func (e *edit) forget(namespace string, s *scope) {
	if s.roles.Len() == 0 && s.bindings.Len() == 0 {
		e.put(namespace, nil)
	}
}

// setRole adds a role, or replaces the role with this name. The rules are shared and must not be changed.
func (e *edit) setRole(namespace, name string, rules []rbacv1.PolicyRule) {
	e.scope(namespace).roles.Set(name, rules)
}

// dropRole removes a role, if there is one with this name.
func (e *edit) dropRole(namespace, name string) {
	if e.find(namespace) == nil {
		return
	}
	s := e.scope(namespace)
	s.roles.Delete(name)
	e.forget(namespace, s)
}

// setBinding adds a binding, or replaces the binding with this name.
func (e *edit) setBinding(b *binding) {
	s := e.scope(b.namespace)
	if old, replaced := s.bindings.Set(b.name, b); replaced {
		e.unlink(s, old)
	}
	for i := range b.subjects {
		m, key := s.subject(b, i)
		if m == nil {
			continue
		}
		g := e.grants(m, key)
		if _, ok := g.of.Get(b.name); !ok { // reasons name the first of equal subjects
			g.of.Set(b.name, grant{b, i})
		}
	}
}

// dropBinding removes a binding, if there is one with this name.
func (e *edit) dropBinding(namespace, name string) {
	if e.find(namespace) == nil {
		return
	}
	s := e.scope(namespace)
	if old, ok := s.bindings.Delete(name); ok {
		e.unlink(s, old)
	}
	e.forget(namespace, s)
}

// unlink removes a binding from the grants of its subjects.
func (e *edit) unlink(s *scope, b *binding) {
	for i := range b.subjects {
		m, key := s.subject(b, i)
		if m == nil {
			continue
		}
		if _, ok := m.Get(key); !ok { // an equal subject came first
			continue
		}
		g := e.grants(m, key)
		if g.of.Delete(b.name); g.of.Len() == 0 {
			m.Delete(key)
		}
	}
}

// grants returns the grants of a subject for changes.
func (e *edit) grants(m *btree.Map[string, *grants], key string) *grants {
	g, ok := m.Get(key)
	switch {
	case !ok:
		g = &grants{e, newMap[grant]()}
	case g.by != e:
		g = &grants{e, g.of.Copy()}
	default:
		return g
	}
	m.Set(key, g)
	return g
}

// subject returns the map and the key under which a subject of a binding is found. The map is nil if the subject matches no user.
func (s *scope) subject(b *binding, i int) (*btree.Map[string, *grants], string) {
	one := &b.subjects[i]
	switch one.Kind {
	case rbacv1.UserKind:
		return s.users, one.Name
	case rbacv1.GroupKind:
		return s.groups, one.Name
	case rbacv1.ServiceAccountKind:
		if namespace := accountNamespace(one, b.namespace); namespace != "" {
			return s.users, accountPrefix + namespace + ":" + one.Name
		}
	}
	return nil, ""
}

// accountPrefix is the prefix of the user names of service accounts.
const accountPrefix = "system:serviceaccount:"

// dropRoles removes all roles: the ClusterRoles, or the Roles of all namespaces.
func (e *edit) dropRoles(namespaced bool) {
	for _, namespace := range e.scopes(namespaced) {
		s := e.scope(namespace)
		s.roles = newMap[[]rbacv1.PolicyRule]()
		e.forget(namespace, s)
	}
}

// dropBindings removes all bindings: the ClusterRoleBindings, or the RoleBindings of all namespaces.
func (e *edit) dropBindings(namespaced bool) {
	for _, namespace := range e.scopes(namespaced) {
		s := e.scope(namespace)
		s.bindings, s.users, s.groups = newMap[*binding](), newMap[*grants](), newMap[*grants]()
		e.forget(namespace, s)
	}
}

// scopes returns the namespaces that are not empty, or "" if the cluster scope is not empty.
func (e *edit) scopes(namespaced bool) []string {
	if namespaced {
		return e.p.namespaces.Keys()
	}
	if e.p.cluster == nil {
		return nil
	}
	return []string{""}
}
