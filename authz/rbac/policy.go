package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/tidwall/btree"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Policy is an immutable set of roles and bindings: those of [Static], or those of an [Authorizer] at one revision. The zero
// Policy has none and has no opinion; its reason says that the roles and bindings are not loaded. All methods may be called
// concurrently.
//
// A Policy allows or has no opinion; no rule denies. A request for an object in a namespace is allowed by any ClusterRoleBinding,
// or by a RoleBinding in that namespace. A request for a cluster-scoped resource or for a path is allowed only by a
// ClusterRoleBinding. The reason of an Allow names the binding, the role and the subject; if several bindings allow the request,
// it names one of them. The reason of no opinion names the roles that the user's bindings refer to and that do not exist.
type Policy struct {
	revision   int64
	loaded     bool
	problem    error  // why the Policy has no opinion, if it is not loaded; nil means errNotLoaded
	cluster    *scope // ClusterRoles and ClusterRoleBindings; nil if there are none
	namespaces *btree.Map[string, *scope]
	missing    int // maximum number of missing roles in a reason
}

// scope has the roles and bindings of one namespace, or of the cluster.
type scope struct {
	by       *edit // the edit that made the scope; only this edit may change it
	roles    *btree.Map[string, []rbacv1.PolicyRule]
	bindings *btree.Map[string, *binding]
	users    *btree.Map[string, *grants] // by user name, including service accounts
	groups   *btree.Map[string, *grants]
}

// grants are the bindings in one scope that have the same subject, by name.
type grants struct {
	by *edit // as in scope
	of *btree.Map[string, grant]
}

// grant is a binding, and the index of the first of its subjects that is the subject of the grants.
type grant struct {
	binding *binding
	subject int
}

// binding is a ClusterRoleBinding, or a RoleBinding if it has a namespace. The slices in it are shared and must not be changed.
type binding struct {
	namespace, name string
	role            rbacv1.RoleRef
	subjects        []rbacv1.Subject
}

// errNotLoaded is the reason before the objects are loaded.
var errNotLoaded = errors.New("RBAC: roles and bindings are not loaded yet")

// unknown returns the reason why the Policy has no opinion on any request, or nil.
func (p *Policy) unknown() error {
	if p.loaded || p.problem != nil {
		return p.problem
	}
	return errNotLoaded
}

// Revision returns the revision at which the objects were read; 0 for those of Static.
func (p *Policy) Revision() int64 { return p.revision }

// Authorize implements authz.Authorizer. It never denies. If ctx ends during a long decision, it has no opinion, with the error of ctx.
func (p *Policy) Authorize(ctx context.Context, a authz.Attributes) (authz.Verdict, string, error) {
	if err := p.unknown(); err != nil {
		return authz.NoOpinion, err.Error(), nil
	}
	d := p.decisionAbout(ctx, &a)
	return d.decide()
}

// decisionAbout returns the decision about a request, before it is made.
func (p *Policy) decisionAbout(ctx context.Context, a *authz.Attributes) decision {
	return decision{policy: p, user: a.User, groups: withoutRepeats(a.User.Groups), asked: a, ctx: ctx}
}

// decide makes the decision.
func (d *decision) decide() (authz.Verdict, string, error) {
	if d.allowed(d.policy.cluster) || d.allowed(d.policy.namespace(d.asked.Namespace)) {
		return authz.Allow, d.by.allows(d.to), nil
	}
	if d.ended {
		return authz.NoOpinion, "", context.Cause(d.ctx)
	}
	return authz.NoOpinion, d.refusal(), nil
}

// namespace returns the scope of a namespace, or nil if it has no objects.
func (p *Policy) namespace(name string) *scope {
	if name == "" {
		return nil
	}
	s, _ := p.namespaces.Get(name)
	return s
}

// decision is the state of one decision.
type decision struct {
	policy *Policy
	user   *authn.User
	groups []string          // of the user, each once
	asked  *authz.Attributes // nil if the rules of the user are listed
	ctx    context.Context   // nil does not end
	// Of an Allow: the binding, the rule of its role, and the subject of the binding.
	by   *binding
	rule *rbacv1.PolicyRule
	to   *rbacv1.Subject

	missing []error // the roles that do not exist, each once
	more    bool    // there are more of them than are kept

	few   [16]*rbacv1.PolicyRule          // the first rules of the first roles that were read
	some  int                             // length of few
	many  map[*rbacv1.PolicyRule]struct{} // those of further roles
	steps int                             // bindings that were examined
	ended bool                            // ctx has ended
}

// again reports whether the rules of a role were read before in this decision. They need not be read for another binding of the user.
func (d *decision) again(rules []rbacv1.PolicyRule) bool {
	if len(rules) == 0 {
		return false
	}
	role := &rules[0]
	for _, known := range d.few[:d.some] {
		if known == role {
			return true
		}
	}
	if d.some < len(d.few) {
		d.few[d.some] = role
		d.some++
		return false
	}
	if _, known := d.many[role]; known {
		return true
	}
	if d.many == nil {
		d.many = map[*rbacv1.PolicyRule]struct{}{}
	}
	d.many[role] = struct{}{}
	return false
}

// goesOn counts a binding, and reports whether the decision goes on. It does not when ctx has ended.
func (d *decision) goesOn() bool {
	const often = 64 // bindings between two looks at ctx
	if d.steps++; d.steps%often == 0 && d.ctx != nil && d.ctx.Err() != nil {
		d.ended = true
	}
	return !d.ended
}

// withoutRepeats returns texts, such as groups, each once, in their order: the same slice if none is repeated.
func withoutRepeats(texts []string) []string {
	const few = 32
	if len(texts) <= few {
		repeated := false
		for i := range texts {
			repeated = repeated || slices.Contains(texts[:i], texts[i])
		}
		if !repeated {
			return texts
		}
	}
	known, once := make(map[string]struct{}, len(texts)), make([]string, 0, len(texts))
	for _, text := range texts {
		if _, ok := known[text]; !ok {
			known[text] = struct{}{}
			once = append(once, text)
		}
	}
	return once
}

// allowed reports whether a binding in s allows the request, and sets by, rule and to.
func (d *decision) allowed(s *scope) bool {
	if s == nil {
		return false
	}
	if g, ok := s.users.Get(d.user.Name); ok && d.byGrants(s, g) {
		return true
	}
	for _, group := range d.groups {
		if !d.goesOn() {
			break
		}
		if g, ok := s.groups.Get(group); ok && d.byGrants(s, g) {
			return true
		}
	}
	return false
}

func (d *decision) byGrants(s *scope, g *grants) (allowed bool) {
	g.of.Scan(func(_ string, one grant) bool {
		if !d.goesOn() {
			return false
		}
		rules, err := d.policy.rulesOf(s, one.binding)
		if err != nil {
			d.miss(err)
			return true
		}
		if d.again(rules) {
			return true
		}
		for i := range rules {
			if allows(&rules[i], d.asked) {
				allowed = true
				d.by, d.rule, d.to = one.binding, &rules[i], s.firstSubject(one, d.user, d.groups)
				return false
			}
		}
		return true
	})
	return allowed
}

// rulesOf returns the rules of the role that a binding in s refers to.
func (p *Policy) rulesOf(s *scope, b *binding) ([]rbacv1.PolicyRule, error) {
	var kind string
	switch b.role.Kind {
	case "ClusterRole":
		s, kind = p.cluster, "clusterrole"
	case "Role":
		if kind = "role"; b.namespace == "" {
			s = nil // a ClusterRoleBinding has no namespace for the role
		}
	default:
		return nil, fmt.Errorf("unsupported role reference kind: %q", b.role.Kind)
	}
	if s != nil {
		if rules, ok := s.roles.Get(b.role.Name); ok {
			return rules, nil
		}
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource(kind), b.role.Name)
}

// firstSubject returns the first subject of g's binding that matches user. g was found by the user's name or by a group.
func (s *scope) firstSubject(g grant, user *authn.User, groups []string) *rbacv1.Subject {
	first := g.subject
	earlier := func(m *btree.Map[string, *grants], key string) {
		if all, ok := m.Get(key); ok {
			if other, ok := all.of.Get(g.binding.name); ok {
				first = min(first, other.subject)
			}
		}
	}
	if first > 0 {
		earlier(s.users, user.Name)
		for _, group := range groups {
			earlier(s.groups, group)
		}
	}
	return &g.binding.subjects[first]
}

// allows returns the reason of an Allow, in the words of kube-apiserver, which writes a name before its namespace.
func (b *binding) allows(to *rbacv1.Subject) string {
	var room [256]byte
	text := append(room[:0], "RBAC: allowed by "...)
	kind, name, subject := "ClusterRoleBinding ", b.name, to.Name
	if b.namespace != "" {
		kind, name = "RoleBinding ", b.name+"/"+b.namespace
	}
	text = strconv.AppendQuote(append(text, kind...), name)
	text = append(append(append(text, " of "...), b.role.Kind...), ' ')
	text = strconv.AppendQuote(text, b.role.Name)
	if to.Kind == rbacv1.ServiceAccountKind {
		subject += "/" + accountNamespace(to, b.namespace)
	}
	text = append(append(append(text, " to "...), to.Kind...), ' ')
	return string(strconv.AppendQuote(text, subject))
}

// accountNamespace returns the namespace of a service account that is a subject of a binding in namespace; "" means that the
// subject has none.
func accountNamespace(s *rbacv1.Subject, namespace string) string {
	if s.Namespace != "" {
		return s.Namespace
	}
	return namespace
}

// miss adds a role that does not exist.
func (d *decision) miss(err error) {
	text := err.Error()
	for _, known := range d.missing {
		if known.Error() == text {
			return
		}
	}
	if len(d.missing) == d.policy.missing {
		d.more = true
		return
	}
	d.missing = append(d.missing, err)
}

// refusal returns the reason of no opinion.
func (d *decision) refusal() string {
	if len(d.missing) == 0 {
		return ""
	}
	return "RBAC: " + joined(d.missing, d.more).Error()
}

// joined returns errs as one error, in the form of kube-apiserver.
func joined(errs []error, more bool) error {
	if more {
		errs = append(errs, errors.New("and more"))
	}
	return utilerrors.NewAggregate(errs)
}

// RulesFor implements authz.RuleResolver. A role is listed once, however many bindings grant it. Like kube-apiserver, it also lists the paths of a ClusterRole that a RoleBinding
// grants, although only ClusterRoleBindings allow paths.
func (p *Policy) RulesFor(_ context.Context, user *authn.User, namespace string) (authz.Rules, error) {
	if err := p.unknown(); err != nil {
		return authz.Rules{Incomplete: true}, err
	}
	if user == nil {
		return authz.Rules{}, nil
	}
	var all authz.Rules
	d := decision{policy: p, user: user}
	add := func(rules []rbacv1.PolicyRule) { addRules(&all, rules) }
	d.each(p.cluster, add)
	d.each(p.namespace(namespace), add)
	if len(d.missing) == 0 {
		return all, nil
	}
	return all, joined(d.missing, d.more)
}

// each calls add with the rules of each role that a binding in s grants to the user, once.
func (d *decision) each(s *scope, add func(rules []rbacv1.PolicyRule)) {
	if s == nil {
		return
	}
	of := func(m *btree.Map[string, *grants], key string) {
		g, ok := m.Get(key)
		if !ok {
			return
		}
		g.of.Scan(func(_ string, one grant) bool {
			rules, err := d.policy.rulesOf(s, one.binding)
			if err != nil {
				d.miss(err)
			}
			if !d.again(rules) {
				add(rules)
			}
			return true
		})
	}
	of(s.users, d.user.Name)
	for _, group := range withoutRepeats(d.user.Groups) {
		of(s.groups, group)
	}
}

// addRules adds rules in the form of a SelfSubjectRulesReview.
func addRules(all *authz.Rules, rules []rbacv1.PolicyRule) {
	for i := range rules {
		r := &rules[i]
		if len(r.Resources) > 0 {
			all.Resources = append(all.Resources, authz.ResourceRule{
				Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
			})
		}
		if len(r.NonResourceURLs) > 0 {
			all.Paths = append(all.Paths, authz.PathRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
	}
}

// allows reports whether a rule allows a request.
func allows(r *rbacv1.PolicyRule, a *authz.Attributes) bool {
	if !has(r.Verbs, rbacv1.VerbAll, a.Verb) {
		return false
	}
	if !a.ResourceRequest {
		return hasPath(r.NonResourceURLs, a.Path)
	}
	return has(r.APIGroups, rbacv1.APIGroupAll, a.APIGroup) &&
		hasResource(r.Resources, a.Resource, a.Subresource) &&
		(len(r.ResourceNames) == 0 || has(r.ResourceNames, a.Name, a.Name))
}

// has reports whether one of two strings is in a list.
func has(list []string, one, other string) bool {
	for _, s := range list {
		if s == one || s == other {
			return true
		}
	}
	return false
}

// hasResource reports whether a list has "*", the resource ("pods", "pods/log"), or "*/log" for a subresource.
func hasResource(list []string, resource, sub string) bool {
	for _, s := range list {
		if s == rbacv1.ResourceAll {
			return true
		}
		if sub == "" {
			if s == resource {
				return true
			}
			continue
		}
		if parent, ok := strings.CutSuffix(s, sub); ok && (parent == "*/" || isParent(parent, resource)) {
			return true
		}
	}
	return false
}

// isParent reports whether s is the resource followed by a slash.
func isParent(s, resource string) bool {
	return len(s) == len(resource)+1 && s[len(resource)] == '/' && s[:len(resource)] == resource
}

// hasPath reports whether a list has the path, or a prefix of the path followed by stars. "*" matches all paths.
func hasPath(list []string, path string) bool {
	for _, s := range list {
		if s == path || strings.HasSuffix(s, "*") && strings.HasPrefix(path, strings.TrimRight(s, "*")) {
			return true
		}
	}
	return false
}
