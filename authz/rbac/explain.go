package rbac

import (
	"cmp"
	"context"
	"slices"

	"github.com/keelson-dev/keelson/authz"
	"github.com/tidwall/btree"
	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	// maxNearest is the maximum number of grants in Explanation.Nearest.
	maxNearest = 5
	// maxExamined is the maximum number of bindings, roles and rules that the search for Nearest looks at: with more objects, it may
	// miss some grants.
	maxExamined = 200_000
)

// Explain implements authz.Explainer. A refusal has at most five nearest grants, in this order: those of the user that lack one value
// in their rule (a resource name, a verb, a resource, an API group), those of the user in other namespaces, those of others, and
// roles that no binding grants; among equal ones those with the fewest wildcards first.
func (p *Policy) Explain(ctx context.Context, a authz.Attributes) authz.Explanation {
	if err := p.unknown(); err != nil {
		return authz.Explanation{Reason: err.Error()}
	}
	d := p.decisionAbout(ctx, &a)
	verdict, reason, err := d.decide()
	e := authz.Explanation{Verdict: verdict, Reason: reason, Err: err}
	if verdict == authz.NoOpinion {
		e.Nearest = p.nearest(&a)
		return e
	}
	grant := grantOf(d.by, d.by.role, d.rule, d.to)
	e.Grant = &grant
	return e
}

// grantOf returns a rule of a role, which b grants to a subject. b and to may be nil.
func grantOf(b *binding, role rbacv1.RoleRef, rule *rbacv1.PolicyRule, to *rbacv1.Subject) authz.Grant {
	g := authz.Grant{Role: &authz.Object{Kind: role.Kind, Name: role.Name}}
	if b != nil {
		g.Binding = &authz.Object{Kind: "ClusterRoleBinding", Name: b.name}
		if b.namespace != "" {
			g.Binding.Kind, g.Binding.Namespace = "RoleBinding", b.namespace
		}
		if role.Kind == "Role" {
			g.Role.Namespace = b.namespace
		}
		if to != nil {
			g.Subject = &authz.Object{Kind: to.Kind, Name: to.Name}
			if to.Kind == rbacv1.ServiceAccountKind {
				g.Subject.Namespace = accountNamespace(to, b.namespace)
			}
		}
	}
	if len(rule.NonResourceURLs) > 0 {
		g.PathRule = &authz.PathRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs}
	}
	if len(rule.Resources) > 0 {
		g.Rule = &authz.ResourceRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames}
	}
	return g
}

// nearest returns the grants that are the nearest to a request that is not allowed.
func (p *Policy) nearest(a *authz.Attributes) []authz.Grant {
	s := search{policy: p, asked: a, groups: withoutRepeats(a.User.Groups), left: maxExamined}
	own := s.own
	s.in(p.cluster, func(in *scope) { own(in, lacks) })
	here := p.namespace(a.Namespace)
	s.in(here, func(in *scope) { own(in, lacks) })
	s.next()
	p.namespaces.Scan(func(name string, in *scope) bool {
		if name != a.Namespace && a.ResourceRequest { // no RoleBinding allows a path
			own(in, lacksNamespace)
		}
		return s.left > 0
	})
	s.next()
	s.in(p.cluster, s.others)
	s.in(here, s.others)
	s.next()
	s.in(p.cluster, func(in *scope) { s.roles(in, "ClusterRole", "") })
	s.in(here, func(in *scope) { s.roles(in, "Role", a.Namespace) })
	s.next()
	return s.found
}

// search looks for grants that nearly allow a request.
type search struct {
	policy *Policy
	asked  *authz.Attributes
	groups []string // of the user, each once
	left   int      // how much may still be examined
	found  []authz.Grant
	now    []candidate // of the kind of grants that the search is looking for
}

// candidate is a grant, and its order among the grants of one kind: the least comes first.
type candidate struct {
	order int
	grant authz.Grant
}

// in calls f with a scope if there is one.
func (s *search) in(in *scope, f func(*scope)) {
	if in != nil {
		f(in)
	}
}

// next adds the best candidates to what is found, and begins with another kind of grants.
func (s *search) next() {
	slices.SortStableFunc(s.now, func(a, b candidate) int { return cmp.Compare(a.order, b.order) })
	for _, c := range s.now[:min(len(s.now), maxNearest-len(s.found))] {
		s.found = append(s.found, c.grant)
	}
	s.now = s.now[:0]
	if len(s.found) == maxNearest {
		s.left = 0
	}
}

// own adds the grants of the user in a scope. lacks says what a rule lacks; a rule that lacks nothing, or more than one thing, is not
// added.
func (s *search) own(in *scope, lacks func(*rbacv1.PolicyRule, *authz.Attributes) authz.Lack) {
	user := s.asked.User
	add := func(m *btree.Map[string, *grants], key string) {
		g, ok := m.Get(key)
		if !ok {
			return
		}
		g.of.Scan(func(_ string, one grant) bool {
			s.rules(in, one.binding, &one.binding.subjects[one.subject], lacks)
			return s.left > 0
		})
	}
	add(in.users, user.Name)
	for _, group := range s.groups {
		if s.left--; s.left <= 0 {
			break
		}
		add(in.groups, group)
	}
}

// others adds the grants in a scope of which the user has none.
func (s *search) others(in *scope) {
	in.bindings.Scan(func(_ string, b *binding) bool {
		var first *rbacv1.Subject
		if len(b.subjects) > 0 {
			first = &b.subjects[0]
		}
		s.rules(in, b, first, func(r *rbacv1.PolicyRule, a *authz.Attributes) authz.Lack {
			if allows(r, a) {
				return authz.LacksSubject
			}
			return ""
		})
		return s.left > 0
	})
}

// rules adds the rules of the role of a binding that lack something.
func (s *search) rules(in *scope, b *binding, to *rbacv1.Subject, lacks func(*rbacv1.PolicyRule, *authz.Attributes) authz.Lack) {
	s.left--
	rules, err := s.policy.rulesOf(in, b)
	if err != nil {
		return
	}
	s.add(rules, lacks, func(rule *rbacv1.PolicyRule) authz.Grant { return grantOf(b, b.role, rule, to) })
}

// roles adds the roles of a scope that would allow the request, unless one of their bindings is found.
func (s *search) roles(in *scope, kind, namespace string) {
	in.roles.Scan(func(name string, rules []rbacv1.PolicyRule) bool {
		s.left--
		known := slices.ContainsFunc(s.found, func(g authz.Grant) bool {
			return g.Role.Kind == kind && g.Role.Name == name && g.Lacks == authz.LacksSubject
		})
		if !known {
			s.add(rules, lacksBinding, func(rule *rbacv1.PolicyRule) authz.Grant {
				g := grantOf(nil, rbacv1.RoleRef{Kind: kind, Name: name}, rule, nil)
				g.Role.Namespace = namespace
				return g
			})
		}
		return s.left > 0
	})
}

// add adds the first, by orderOf, of the rules that lack something.
func (s *search) add(rules []rbacv1.PolicyRule, lacks func(*rbacv1.PolicyRule, *authz.Attributes) authz.Lack, grant func(*rbacv1.PolicyRule) authz.Grant) {
	best, least, lack := -1, 0, authz.Lack("")
	for i := range rules {
		if s.left--; s.left <= 0 {
			break
		}
		why := lacks(&rules[i], s.asked)
		if why == "" {
			continue
		}
		if order := orderOf(&rules[i], why); best < 0 || order < least {
			best, least, lack = i, order, why
		}
	}
	if best < 0 {
		return
	}
	if len(s.now) >= 4*maxNearest { // keep the best of them
		slices.SortStableFunc(s.now, func(a, b candidate) int { return cmp.Compare(a.order, b.order) })
		s.now = s.now[:maxNearest]
	}
	g := grant(&rules[best])
	g.Lacks = lack
	s.now = append(s.now, candidate{least, g})
}

// orderOf returns the order of a rule that lacks something: by what it lacks, then by how many of its lists allow all values.
func orderOf(r *rbacv1.PolicyRule, lack authz.Lack) int {
	order := 8 * slices.Index([]authz.Lack{authz.LacksResourceName, authz.LacksVerb, authz.LacksResource, authz.LacksAPIGroup}, lack)
	for _, list := range [][]string{r.Verbs, r.APIGroups, r.Resources, r.NonResourceURLs} {
		if slices.Contains(list, "*") {
			order++
		}
	}
	return order
}

// lacksNamespace returns LacksNamespace if a rule would allow the request in its own namespace.
func lacksNamespace(r *rbacv1.PolicyRule, a *authz.Attributes) authz.Lack {
	if allows(r, a) {
		return authz.LacksNamespace
	}
	return ""
}

// lacksBinding returns LacksBinding if a rule would allow the request.
func lacksBinding(r *rbacv1.PolicyRule, a *authz.Attributes) authz.Lack {
	if allows(r, a) {
		return authz.LacksBinding
	}
	return ""
}

// lacks returns the one thing that a rule lacks to allow a request; "" if it lacks nothing or more than one thing.
func lacks(r *rbacv1.PolicyRule, a *authz.Attributes) (why authz.Lack) {
	missing := 0
	check := func(ok bool, lack authz.Lack) {
		if !ok {
			missing++
			why = lack
		}
	}
	check(has(r.Verbs, rbacv1.VerbAll, a.Verb), authz.LacksVerb)
	if a.ResourceRequest {
		check(has(r.APIGroups, rbacv1.APIGroupAll, a.APIGroup), authz.LacksAPIGroup)
		check(hasResource(r.Resources, a.Resource, a.Subresource), authz.LacksResource)
		check(len(r.ResourceNames) == 0 || has(r.ResourceNames, a.Name, a.Name), authz.LacksResourceName)
	} else {
		check(hasPath(r.NonResourceURLs, a.Path), authz.LacksResource)
	}
	other := len(r.Resources) == 0 // whether the rule is for the other kind of requests
	if !a.ResourceRequest {
		other = len(r.NonResourceURLs) == 0
	}
	if missing != 1 || other {
		return ""
	}
	return why
}

// SubjectsFor implements authz.SubjectResolver: it returns the subjects of all bindings that allow a request.
func (p *Policy) SubjectsFor(_ context.Context, a authz.Attributes, limit int) authz.Subjects {
	if p.unknown() != nil {
		return authz.Subjects{Incomplete: true}
	}
	var all authz.Subjects
	list := func(in *scope) {
		if in == nil {
			return
		}
		in.bindings.Scan(func(_ string, b *binding) bool {
			rules, _ := p.rulesOf(in, b) // a missing role allows nothing
			i := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool { return allows(&r, &a) })
			for s := range b.subjects {
				if i < 0 {
					break
				}
				if len(all.Grants) >= limit {
					all.Incomplete = true
					return false
				}
				all.Grants = append(all.Grants, grantOf(b, b.role, &rules[i], &b.subjects[s]))
			}
			return true
		})
	}
	list(p.cluster)
	list(p.namespace(a.Namespace))
	return all
}

// Explain implements authz.Explainer like Policy.Explain.
func (a *Authorizer) Explain(ctx context.Context, asked authz.Attributes) authz.Explanation {
	return a.policy(ctx).Explain(ctx, asked)
}

// SubjectsFor implements authz.SubjectResolver like Policy.SubjectsFor.
func (a *Authorizer) SubjectsFor(ctx context.Context, asked authz.Attributes, limit int) authz.Subjects {
	return a.policy(ctx).SubjectsFor(ctx, asked, limit)
}
