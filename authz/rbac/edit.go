package rbac

import (
	"github.com/tidwall/btree"
	rbacv1 "k8s.io/api/rbac/v1"
)

// An edit makes a Policy out of another one, which stays as it is. Of the maps of that one it copies those that it changes,
// each once; a copy of a map shares the nodes that are not changed. A scope or grants that name the edit in their field by
// are copies already. An edit is used by one goroutine, and no more after done.
type edit struct{ p *Policy }

// degree is half of how many entries a node of a map has. What a change copies is one node for each level: small nodes make
// it cheap, and large ones the look-ups.
const degree = 8

func newMap[V any]() *btree.Map[string, V] { return btree.NewMap[string, V](degree) }

// edit begins with what is in p, and leaves p alone.
func (p *Policy) edit() *edit {
	next := *p
	if next.namespaces == nil {
		next.namespaces = newMap[*scope]()
	} else {
		next.namespaces = next.namespaces.Copy()
	}
	return &edit{&next}
}

// done returns the Policy, which is that of a revision. The edit lets go of it: what names the edit would keep it in memory.
func (e *edit) done(revision int64, missing int) *Policy {
	p := e.p
	e.p = nil
	p.loaded, p.revision, p.missing = true, revision, missing
	return p
}

// find returns the scope of a namespace to read, or of no namespace; nil: there is nothing in it.
func (e *edit) find(namespace string) *scope {
	if namespace == "" {
		return e.p.cluster
	}
	s, _ := e.p.namespaces.Get(namespace)
	return s
}

// scope returns the scope of a namespace to change.
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

// forget takes a scope away that has nothing in it any more.
func (e *edit) forget(namespace string, s *scope) {
	if s.roles.Len() == 0 && s.bindings.Len() == 0 {
		e.put(namespace, nil)
	}
}

// setRole adds a role, or replaces the one of that name. The rules are shared and read-only.
func (e *edit) setRole(namespace, name string, rules []rbacv1.PolicyRule) {
	e.scope(namespace).roles.Set(name, rules)
}

// dropRole takes a role away, if there is one of that name.
func (e *edit) dropRole(namespace, name string) {
	if e.find(namespace) == nil {
		return
	}
	s := e.scope(namespace)
	s.roles.Delete(name)
	e.forget(namespace, s)
}

// setBinding adds a binding, or replaces the one of that name.
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
		if _, ok := g.of.Get(b.name); !ok { // the first of equal subjects is the one that reasons name
			g.of.Set(b.name, grant{b, i})
		}
	}
}

// dropBinding takes a binding away, if there is one of that name.
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

// unlink takes a binding from its subjects.
func (e *edit) unlink(s *scope, b *binding) {
	for i := range b.subjects {
		m, key := s.subject(b, i)
		if m == nil {
			continue
		}
		if _, ok := m.Get(key); !ok { // an equal subject came before
			continue
		}
		g := e.grants(m, key)
		if g.of.Delete(b.name); g.of.Len() == 0 {
			m.Delete(key)
		}
	}
}

// grants returns the grants of a subject to change.
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

// subject returns where a subject of a binding is found, and by what; a nil map: it is nobody.
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

// accountPrefix begins the names of users who are service accounts.
const accountPrefix = "system:serviceaccount:"

// dropRoles takes all roles away: the ClusterRoles, or the Roles of all namespaces.
func (e *edit) dropRoles(namespaced bool) {
	for _, namespace := range e.scopes(namespaced) {
		s := e.scope(namespace)
		s.roles = newMap[[]rbacv1.PolicyRule]()
		e.forget(namespace, s)
	}
}

// dropBindings takes all bindings away: the ClusterRoleBindings, or the RoleBindings of all namespaces.
func (e *edit) dropBindings(namespaced bool) {
	for _, namespace := range e.scopes(namespaced) {
		s := e.scope(namespace)
		s.bindings, s.users, s.groups = newMap[*binding](), newMap[*grants](), newMap[*grants]()
		e.forget(namespace, s)
	}
}

// scopes are the namespaces that have something, or "" when that has.
func (e *edit) scopes(namespaced bool) []string {
	if namespaced {
		return e.p.namespaces.Keys()
	}
	if e.p.cluster == nil {
		return nil
	}
	return []string{""}
}
