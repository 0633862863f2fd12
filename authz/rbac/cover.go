package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Uncovered returns the parts of the rules wanted that the rules held do not allow. A part is a rule with one verb for one
// resource of one API group with at most one name, or with one verb for one path. A part is covered if one of the rules held has
// all of it; "*" in wanted is covered by "*" only, and "*/scale" by "*/scale" or "*".
//
// The parts are in the order of wanted, at most 5000 of them; more is true if there are others. The error is [ErrTooManyParts] if
// the rules are too many to compare.
func Uncovered(held, wanted []rbacv1.PolicyRule) (missing []rbacv1.PolicyRule, more bool, err error) {
	if holdsAll(held) {
		return nil, false, nil
	}
	wanted = once(wanted)
	if tooMany(held, wanted) {
		return nil, false, ErrTooManyParts
	}
	c := newCover(held, wanted)
	for i := range wanted {
		c.rule(&wanted[i])
	}
	return c.missing, c.more, nil
}

const (
	// maxParts bounds the number of parts of the rules that are wanted, times the number of rules that are held in steps of 64.
	maxParts = 1 << 22
	// maxTexts bounds the number of texts in the rules that are wanted, times the number of rules and patterns that are held.
	maxTexts = 1 << 24
	// mostMissing bounds the parts that Uncovered returns.
	mostMissing = 5000
)

// ErrTooManyParts is the error of [Uncovered] for rules that are not compared, because that would take long.
var ErrTooManyParts = fmt.Errorf("the rules have too many combinations of verbs, API groups, resources and names to compare them with those that the user holds (about %d): "+
	"use \"*\", or write several roles", maxParts)

// holdsAll reports whether rules allow everything, as those of cluster-admin do. Rules of any size need no comparison with them.
func holdsAll(held []rbacv1.PolicyRule) bool {
	resources, paths := false, false
	for i := range held {
		r := &held[i]
		if !slices.Contains(r.Verbs, rbacv1.VerbAll) || len(r.ResourceNames) > 0 {
			continue
		}
		resources = resources || slices.Contains(r.APIGroups, rbacv1.APIGroupAll) && slices.Contains(r.Resources, rbacv1.ResourceAll)
		paths = paths || slices.Contains(r.NonResourceURLs, rbacv1.NonResourceAll)
	}
	return resources && paths
}

func tooMany(held, wanted []rbacv1.PolicyRule) bool {
	patterns, texts, n := 1, 0, 0
	for i := range held {
		patterns += 1 + len(held[i].Resources) + len(held[i].NonResourceURLs)
	}
	for i := range wanted {
		w := &wanted[i]
		texts += len(w.Verbs) + len(w.APIGroups) + len(w.Resources) + len(w.ResourceNames) + len(w.NonResourceURLs)
		n += parts(w) // at most maxParts+1 for each rule: no overflow
	}
	return texts > maxTexts/patterns || n > maxParts/max(wordsOf(held), 1)
}

// parts returns the number of parts of a rule, or maxParts+1 if there are more.
func parts(r *rbacv1.PolicyRule) int {
	n := times(times(times(len(r.APIGroups), len(r.Resources)), len(r.Verbs)), max(len(r.ResourceNames), 1))
	return min(n+times(len(r.NonResourceURLs), len(r.Verbs)), maxParts+1)
}

func times(a, b int) int {
	if b > 0 && a > maxParts/b {
		return maxParts + 1
	}
	return a * b
}

// set is a set of the rules held, by their indexes.
type set []uint64

func (s set) add(i int) { s[i/64] |= 1 << (i % 64) }

func wordsOf(held []rbacv1.PolicyRule) int { return (len(held) + 63) / 64 }

// cover compares rules with the rules held. For each text that is wanted in one of the five lists of a rule, it has the set of
// rules held that allow the text in that list.
type cover struct {
	words                                  int // length of the sets
	verbs, groups, resources, names, paths map[string]set
	unnamed                                set // rules that are for objects of all names

	missing []rbacv1.PolicyRule
	more    bool
}

func newCover(held, wanted []rbacv1.PolicyRule) *cover {
	c := &cover{
		words: wordsOf(held), verbs: map[string]set{}, groups: map[string]set{}, resources: map[string]set{}, names: map[string]set{}, paths: map[string]set{},
	}
	c.unnamed = make(set, c.words)
	for i := range wanted {
		w := &wanted[i]
		c.want(c.verbs, w.Verbs)
		c.want(c.groups, w.APIGroups)
		c.want(c.resources, w.Resources)
		c.want(c.names, w.ResourceNames)
		c.want(c.paths, w.NonResourceURLs)
	}
	for i := range held {
		c.hold(i, &held[i])
	}
	return c
}

func (c *cover) want(all map[string]set, texts []string) {
	for _, text := range texts {
		if _, ok := all[text]; !ok {
			all[text] = make(set, c.words)
		}
	}
}

// hold adds a rule held to the sets of the texts that it allows.
func (c *cover) hold(i int, r *rbacv1.PolicyRule) {
	hold(c.verbs, r.Verbs, rbacv1.VerbAll, i)
	hold(c.groups, r.APIGroups, rbacv1.APIGroupAll, i)
	hold(c.resources, r.Resources, rbacv1.ResourceAll, i)
	for _, resource := range r.Resources {
		if sub, ok := strings.CutPrefix(resource, "*/"); ok {
			for wanted, s := range c.resources {
				if _, of, ok := strings.Cut(wanted, "/"); ok && of == sub {
					s.add(i)
				}
			}
		}
	}
	for _, name := range r.ResourceNames { // "*" is a name as any other
		if s, ok := c.names[name]; ok {
			s.add(i)
		}
	}
	if len(r.ResourceNames) == 0 {
		c.unnamed.add(i)
	}
	for path, s := range c.paths {
		if hasPath(r.NonResourceURLs, path) {
			s.add(i)
		}
	}
}

// hold adds the rule i to the sets of the texts in a list of it; any stands for all texts.
func hold(all map[string]set, list []string, any string, i int) {
	if slices.Contains(list, any) {
		for _, s := range all {
			s.add(i)
		}
		return
	}
	for _, text := range list {
		if s, ok := all[text]; ok {
			s.add(i)
		}
	}
}

// once returns rules whose lists have each text once.
func once(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	out := slices.Clone(rules)
	for i := range out {
		r := &out[i]
		for _, list := range []*[]string{&r.Verbs, &r.APIGroups, &r.Resources, &r.ResourceNames, &r.NonResourceURLs} {
			*list = withoutRepeats(*list)
		}
	}
	return out
}

// sets returns the sets of the texts in a list. They are looked up once, because the texts may be long.
func sets(all map[string]set, list []string) []set {
	out := make([]set, len(list))
	for i, text := range list {
		out[i] = all[text]
	}
	return out
}

// rule adds the parts of a rule that are not covered.
func (c *cover) rule(r *rbacv1.PolicyRule) {
	verbs, names := sets(c.verbs, r.Verbs), sets(c.names, r.ResourceNames)
	groups, resources, paths := sets(c.groups, r.APIGroups), sets(c.resources, r.Resources), sets(c.paths, r.NonResourceURLs)
	for g, group := range r.APIGroups {
		for i, resource := range r.Resources {
			for v, verb := range r.Verbs {
				if c.covered(verbs[v], groups[g], resources[i], c.unnamed) {
					continue
				}
				if len(r.ResourceNames) == 0 {
					c.miss(rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}})
				}
				for n, name := range r.ResourceNames {
					if !c.covered(verbs[v], groups[g], resources[i], names[n]) {
						c.miss(rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{name}})
					}
				}
			}
		}
	}
	for i, path := range r.NonResourceURLs {
		for v, verb := range r.Verbs {
			if !c.covered(verbs[v], paths[i], c.unnamed, c.unnamed) {
				c.miss(rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: []string{path}})
			}
		}
	}
}

func (c *cover) miss(part rbacv1.PolicyRule) {
	if len(c.missing) == mostMissing {
		c.more = true
		return
	}
	c.missing = append(c.missing, part)
}

// covered reports whether a rule is in all four sets.
func (c *cover) covered(one, two, three, four set) bool {
	for i := range c.words {
		if one[i]&two[i]&three[i]&four[i] != 0 {
			return true
		}
	}
	return false
}
