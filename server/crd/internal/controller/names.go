package controller

import (
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// namesakes finds the definitions of a group by the names that they ask for or have, so that who comes to have a name, or loses it,
// concerns those that may want it, and not all of the group.
type namesakes struct {
	members          map[*known]bool
	resources, kinds map[string]map[*known]bool // plurals, singulars and short names; kinds and list kinds
}

// resourceNames and kindNames are the two sets of names that a definition may have, without what is empty.
func resourceNames(names apiextensionsv1.CustomResourceDefinitionNames) []string {
	return withoutEmpty(append([]string{names.Plural, names.Singular}, names.ShortNames...))
}

func kindNames(names apiextensionsv1.CustomResourceDefinitionNames) []string {
	return withoutEmpty([]string{names.Kind, names.ListKind})
}

func withoutEmpty(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// enter adds a definition to its group, by the names of its crd.
func (c *Controller) enter(k *known) {
	g := c.namesakes[k.crd.Spec.Group]
	if g == nil {
		g = &namesakes{members: map[*known]bool{}, resources: map[string]map[*known]bool{}, kinds: map[string]map[*known]bool{}}
		c.namesakes[k.crd.Spec.Group] = g
	}
	g.members[k] = true
	each := func(in map[string]map[*known]bool, names []string) {
		for _, name := range names {
			if in[name] == nil {
				in[name] = map[*known]bool{}
			}
			in[name][k] = true
		}
	}
	for _, names := range []apiextensionsv1.CustomResourceDefinitionNames{k.crd.Spec.Names, k.crd.Status.AcceptedNames} {
		each(g.resources, resourceNames(names))
		each(g.kinds, kindNames(names))
	}
}

// exit takes a definition out of its group, before its crd changes.
func (c *Controller) exit(k *known) {
	if k.crd == nil {
		return
	}
	g := c.namesakes[k.crd.Spec.Group]
	if g == nil {
		return
	}
	delete(g.members, k)
	each := func(in map[string]map[*known]bool, names []string) {
		for _, name := range names {
			delete(in[name], k)
			if len(in[name]) == 0 {
				delete(in, name)
			}
		}
	}
	for _, names := range []apiextensionsv1.CustomResourceDefinitionNames{k.crd.Spec.Names, k.crd.Status.AcceptedNames} {
		each(g.resources, resourceNames(names))
		each(g.kinds, kindNames(names))
	}
	if len(g.members) == 0 {
		delete(c.namesakes, k.crd.Spec.Group)
	}
}

// look has the definitions of a group looked at.
func (c *Controller) look(group string) {
	if g := c.namesakes[group]; g != nil {
		for k := range g.members {
			k.dirty = true
		}
	}
}

// lookFor has those definitions of a group looked at that ask for one of the names or have it, and those that are not served as
// they ask to be, whatever that is for.
func (c *Controller) lookFor(group string, names ...apiextensionsv1.CustomResourceDefinitionNames) {
	g := c.namesakes[group]
	if g == nil {
		return
	}
	for k := range g.members {
		k.dirty = k.dirty || k.refused != "" || !definition.IsTrue(k.crd, apiextensionsv1.NamesAccepted)
	}
	for _, n := range names {
		for _, name := range resourceNames(n) {
			for k := range g.resources[name] {
				k.dirty = true
			}
		}
		for _, name := range kindNames(n) {
			for k := range g.kinds[name] {
				k.dirty = true
			}
		}
	}
}

// taken returns the names that a definition may not have, of those that it asks for or has.
func (c *Controller) taken(k *known) *definition.Taken {
	taken := &definition.Taken{}
	group := k.crd.Spec.Group
	g, u := c.namesakes[group], c.others[group]
	first := func(other *known) bool {
		return definition.IsTrue(other.crd, apiextensionsv1.Established) || rank(other) < rank(k)
	}
	for _, names := range []apiextensionsv1.CustomResourceDefinitionNames{k.crd.Spec.Names, k.crd.Status.AcceptedNames} {
		for _, name := range resourceNames(names) {
			if u != nil && u.names[name] {
				taken.AddResource(true, name)
			}
			for other := range g.resources[name] {
				if other != k && slices.Contains(resourceNames(other.crd.Status.AcceptedNames), name) {
					taken.AddResource(first(other), name)
				}
			}
		}
		for _, name := range kindNames(names) {
			if u != nil && u.kindNames[name] {
				taken.AddKind(true, name)
			}
			for other := range g.kinds[name] {
				if other != k && slices.Contains(kindNames(other.crd.Status.AcceptedNames), name) {
					taken.AddKind(first(other), name)
				}
			}
		}
	}
	return taken
}

// used are names of a group that others than definitions have: as names of resources and kinds, and as any that a definition
// could be in conflict with.
type used struct {
	resources, kinds map[string]bool
	names, kindNames map[string]bool
}

func (u *used) equal(other *used) bool {
	return maps.Equal(u.resources, other.resources) && maps.Equal(u.kinds, other.kinds) &&
		maps.Equal(u.names, other.names) && maps.Equal(u.kindNames, other.kindNames)
}

// compareOthers looks at what others serve, and has the definitions looked at in whose groups that changed.
func (c *Controller) compareOthers() {
	c.changed = c.catalogue.Changed()
	own := map[schema.GroupResource]bool{}
	for _, k := range c.known {
		if k.served != nil {
			own[k.served.resource] = true
		}
	}
	now := map[string]*used{}
	for _, kind := range c.catalogue.Kinds() {
		if own[kind.Resource.GroupResource()] {
			continue
		}
		c.cleanup.Gate.Forget(kind.Resource.GroupResource())
		for _, gvk := range kind.Kinds {
			u := now[gvk.Group]
			if u == nil {
				u = &used{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
				now[gvk.Group] = u
			}
			u.resources[kind.Resource.Resource], u.kinds[gvk.Kind] = true, true
			for _, name := range append([]string{kind.Resource.Resource, kind.Singular}, kind.ShortNames...) {
				u.names[name] = true
			}
			u.kindNames[gvk.Kind], u.kindNames[kind.ListKind] = true, true
		}
	}
	before := c.others
	c.others = now
	for group := range before {
		if now[group] == nil {
			c.look(group)
		}
	}
	for group, u := range now {
		if old := before[group]; old == nil || !u.equal(old) {
			c.look(group)
		}
	}
}

// freshen looks at what others serve if it may have changed since.
func (c *Controller) freshen() {
	select {
	case <-c.changed:
		c.compareOthers()
	default:
	}
}

// rank orders claims: those that have none come last.
func rank(k *known) int64 {
	if k.claim == 0 {
		return int64(^uint64(0) >> 1)
	}
	return k.claim
}

func sameNames(a, b apiextensionsv1.CustomResourceDefinitionNames) bool {
	return equality.Semantic.DeepEqual(a, b)
}
