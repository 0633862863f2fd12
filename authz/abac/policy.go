package abac

import (
	"context"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/abac/internal/v1beta1"
)

// Policy authorizes requests by the lines of a file. Make one with ReadFile or Parse. It does not change, and all methods may be called
// concurrently.
type Policy struct {
	rules           []rule           // those that are for somebody, in the order of the file
	byUser, byGroup map[string][]int // indices of the rules of a user, and of those of a group and any user
	unversioned     bool
}

var (
	_ authz.Authorizer   = (*Policy)(nil)
	_ authz.RuleResolver = (*Policy)(nil)
)

// Unversioned reports whether a line of the file states no version. kube-apiserver warns of such files.
func (p *Policy) Unversioned() bool { return p.unversioned }

// Authorize implements authz.Authorizer.
func (p *Policy) Authorize(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
	matches := func(i int) bool { return p.rules[i].isFor(a.User) && p.rules[i].matches(&a) }
	if slices.ContainsFunc(p.byUser[a.User.Name], matches) {
		return authz.Allow, "", nil
	}
	for _, group := range a.User.Groups {
		if slices.ContainsFunc(p.byGroup[group], matches) {
			return authz.Allow, "", nil
		}
	}
	return authz.NoOpinion, "No policy matched.", nil
}

// RulesFor implements authz.RuleResolver.
func (p *Policy) RulesFor(_ context.Context, user *authn.User, namespace string) (authz.Rules, error) {
	var out authz.Rules
	for _, i := range p.of(user) {
		r := &p.rules[i]
		if !is(r.Namespace, namespace) || !r.isFor(user) {
			continue
		}
		verbs := []string{all}
		if r.Readonly {
			verbs = []string{"get", "list", "watch"}
		}
		if r.Resource != "" {
			out.Resources = append(out.Resources, authz.ResourceRule{Verbs: verbs, APIGroups: []string{r.APIGroup}, Resources: []string{r.Resource}})
		}
		if r.NonResourcePath != "" {
			out.Paths = append(out.Paths, authz.PathRule{Verbs: verbs, NonResourceURLs: []string{r.NonResourcePath}})
		}
	}
	return out, nil
}

// of returns the indices of the rules that may be for a user, in the order of the file.
func (p *Policy) of(user *authn.User) []int {
	found := slices.Clone(p.byUser[user.Name])
	for _, group := range user.Groups {
		found = append(found, p.byGroup[group]...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// add adds a rule.
func (p *Policy) add(r rule) {
	at := len(p.rules)
	switch {
	case r.User != "":
		p.byUser[r.User] = append(p.byUser[r.User], at)
	case r.Group != "":
		p.byGroup[r.Group] = append(p.byGroup[r.Group], at)
	default:
		return // it is for nobody
	}
	p.rules = append(p.rules, r)
}

// rule is a line with its stars for users resolved. A rule with a user and a group is for the user as a member of the group.
type rule v1beta1.PolicySpec

// isFor reports whether a rule is for a user.
func (r *rule) isFor(user *authn.User) bool {
	return (r.User == "" || r.User == user.Name) && (r.Group == "" || slices.Contains(user.Groups, r.Group))
}

// matches reports whether a rule allows a request of those whom it is for.
func (r *rule) matches(a *authz.Attributes) bool {
	readOnly := a.Verb == "get" || a.Verb == "list" || a.Verb == "watch"
	switch {
	case r.Readonly && !readOnly:
		return false
	case a.ResourceRequest:
		return is(r.Namespace, a.Namespace) && is(r.Resource, a.Resource) && is(r.APIGroup, a.APIGroup)
	}
	prefix, below := strings.CutSuffix(r.NonResourcePath, all)
	return r.NonResourcePath == a.Path || below && strings.HasPrefix(a.Path, prefix)
}

// is reports whether a field of a rule matches a value.
func is(field, value string) bool { return field == all || field == value }
