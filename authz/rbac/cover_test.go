package rbac_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/rbac"
	rbacv1 "k8s.io/api/rbac/v1"
)

// randomRules returns rules of few texts, so that they often cover each other.
func randomRules(r *rand.Rand, n int) []rbacv1.PolicyRule {
	pick := func(most int, of ...string) []string {
		var list []string
		for range r.IntN(most + 1) {
			list = append(list, of[r.IntN(len(of))])
		}
		return list
	}
	var rules []rbacv1.PolicyRule
	for range n {
		rule := rbacv1.PolicyRule{Verbs: pick(3, "get", "list", "create", "*")}
		if r.IntN(4) == 0 {
			rule.NonResourceURLs = pick(2, "*", "/a", "/a/", "/a/*", "/a*", "/a/b", "/b", "/*")
		} else {
			rule.APIGroups = pick(2, "", "apps", "*")
			rule.Resources = pick(3, "pods", "pods/log", "nodes", "nodes/log", "*/log", "*", "*/*", "pods/a/b", "*/a/b")
			if r.IntN(3) == 0 {
				rule.ResourceNames = pick(2, "a", "b", "*", "")
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

// naiveUncovered compares every part with every rule.
func naiveUncovered(held, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var missing []rbacv1.PolicyRule
	try := func(part rbacv1.PolicyRule) {
		if !slices.ContainsFunc(held, func(h rbacv1.PolicyRule) bool { return naiveCovers(h, part) }) {
			missing = append(missing, part)
		}
	}
	for _, w := range wanted {
		for _, list := range []*[]string{&w.Verbs, &w.APIGroups, &w.Resources, &w.ResourceNames, &w.NonResourceURLs} {
			*list = onceEach(*list)
		}
		for _, group := range w.APIGroups {
			for _, resource := range w.Resources {
				for _, verb := range w.Verbs {
					part := rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
					if len(w.ResourceNames) == 0 {
						try(part)
					}
					for _, name := range w.ResourceNames {
						part.ResourceNames = []string{name}
						try(part)
					}
				}
			}
		}
		for _, path := range w.NonResourceURLs {
			for _, verb := range w.Verbs {
				try(rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: []string{path}})
			}
		}
	}
	return missing
}

// onceEach returns texts without those that came before.
func onceEach(texts []string) (out []string) {
	for i, text := range texts {
		if !slices.Contains(texts[:i], text) {
			out = append(out, text)
		}
	}
	return out
}

func naiveCovers(held, part rbacv1.PolicyRule) bool {
	has := func(list []string, texts ...string) bool {
		return slices.ContainsFunc(texts, func(s string) bool { return slices.Contains(list, s) })
	}
	if !has(held.Verbs, "*", part.Verbs[0]) {
		return false
	}
	if len(held.ResourceNames) > 0 && (len(part.ResourceNames) == 0 || !slices.Contains(held.ResourceNames, part.ResourceNames[0])) {
		return false
	}
	if len(part.NonResourceURLs) > 0 {
		path := part.NonResourceURLs[0]
		return slices.ContainsFunc(held.NonResourceURLs, func(h string) bool {
			return h == path || strings.HasSuffix(h, "*") && strings.HasPrefix(path, strings.TrimRight(h, "*"))
		})
	}
	resources := []string{"*", part.Resources[0]}
	if _, sub, ok := strings.Cut(part.Resources[0], "/"); ok {
		resources = append(resources, "*/"+sub)
	}
	return has(held.APIGroups, "*", part.APIGroups[0]) && has(held.Resources, resources...)
}

// Random rules are covered as by a comparison of each part with each rule, and who holds rules that cover others may do everything
// that the others allow.
func TestCoveredRules(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	some, none := 0, 0
	for i := range 20_000 {
		held, wanted := randomRules(r, r.IntN(5)), randomRules(r, 1+r.IntN(3))
		if i%100 == 0 {
			held = randomRules(r, 150) // more than one word of a set
		}
		want := naiveUncovered(held, wanted)
		got, more, err := rbac.Uncovered(held, wanted)
		if err != nil || more || !reflect.DeepEqual(got, want) {
			t.Fatalf("held %v\nwanted %v\ngot %v, %v, %v\nwant %v", held, wanted, got, more, err, want)
		}
		if len(got) > 0 {
			some++
			continue
		}
		none++
		for range 20 {
			a := authz.Attributes{User: &authn.User{Name: "u"}, Verb: []string{"get", "list", "create", "delete"}[r.IntN(4)]}
			if r.IntN(4) == 0 {
				a.Path = []string{"/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/b"}[r.IntN(7)]
			} else {
				a.ResourceRequest = true
				a.APIGroup = []string{"", "apps", "other"}[r.IntN(3)]
				a.Resource = []string{"pods", "nodes", "secrets"}[r.IntN(3)]
				a.Subresource = []string{"", "log", "a"}[r.IntN(3)]
				a.Name = []string{"", "a", "b", "c"}[r.IntN(4)]
			}
			allowed := func(rules []rbacv1.PolicyRule) bool {
				return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return naiveRule(r, a) })
			}
			if allowed(wanted) && !allowed(held) {
				t.Fatalf("held %v\ncovers %v\nbut not %s", held, wanted, describe(a))
			}
		}
	}
	if some < 2000 || none < 2000 {
		t.Errorf("%d pairs are not covered, and %d are: both should be common", some, none)
	}
}

// The work and the result of a comparison have bounds.
func TestBoundsOfComparisons(t *testing.T) {
	t.Parallel()
	many := func(prefix string, n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint(prefix, i)
		}
		return list
	}
	get := []string{"get"}
	one := []rbacv1.PolicyRule{{Verbs: get, APIGroups: []string{""}, Resources: []string{"pods"}}}
	for what, c := range map[string]struct {
		held, wanted []rbacv1.PolicyRule
		missing      int
		more         bool
		err          error
	}{
		"parts":      {one, []rbacv1.PolicyRule{{Verbs: many("v", 300), APIGroups: many("g", 300), Resources: many("r", 300), ResourceNames: many("n", 300)}}, 0, false, rbac.ErrTooManyParts},
		"everything": {[]rbacv1.PolicyRule{rule("*", "*", "*", ""), paths("*", "*")}, []rbacv1.PolicyRule{{Verbs: many("v", 300), APIGroups: many("g", 300), Resources: many("r", 300)}}, 0, false, nil},
		"rules":      {slices.Repeat(one, 1000), []rbacv1.PolicyRule{{Verbs: many("v", 700), APIGroups: many("g", 10), Resources: many("r", 100)}}, 0, false, rbac.ErrTooManyParts},
		"texts":      {slices.Repeat(one, 10_000), []rbacv1.PolicyRule{{Verbs: get, NonResourceURLs: many("/", 10_000)}}, 0, false, rbac.ErrTooManyParts},
		"missing":    {one, []rbacv1.PolicyRule{{Verbs: many("v", 100), APIGroups: many("g", 100), Resources: many("r", 100)}}, 5000, true, nil},
		"whole role": {one, []rbacv1.PolicyRule{{Verbs: many("v", 50), APIGroups: get, Resources: many("r", 100)}}, 5000, false, nil},
	} {
		missing, more, err := rbac.Uncovered(c.held, c.wanted)
		if len(missing) != c.missing || more != c.more || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v, %v; want %d, %v, %v", what, len(missing), more, err, c.missing, c.more, c.err)
		}
	}
	p := must(rbac.Static())
	err := p.CheckGrant(&authn.User{Name: "u"}, "", "roles", []rbacv1.PolicyRule{{Verbs: many("v", 100), APIGroups: many("g", 100), Resources: get}})
	contains(t, err, "\nand more")
	contains(t, (&rbac.Policy{}).CheckGrant(&authn.User{Name: "u"}, "", "roles", nil), "not known")
}

func must(p *rbac.Policy, err error) *rbac.Policy {
	if err != nil {
		panic(err)
	}
	return p
}
