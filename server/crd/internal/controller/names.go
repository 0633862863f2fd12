package controller

import (
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// namesakes is an index of the definitions of a group by the names that they ask for or have. If a name is taken or becomes free,
// only the definitions with that name must be processed, not the whole group.
type namesakes struct {
	members          map[*known]bool
	resources, kinds map[string]map[*known]bool // by plurals, singulars and short names; by kinds and list kinds
}

// resourceNames and kindNames return the two sets of names of a definition, without empty ones.
func resourceNames(names apiextensionsv1.CustomResourceDefinitionNames) []string {
	return withoutEmpty(append([]string{names.Plural, names.Singular}, names.ShortNames...))
}

func kindNames(names apiextensionsv1.CustomResourceDefinitionNames) []string {
	return withoutEmpty([]string{names.Kind, names.ListKind})
}

func withoutEmpty(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// enter adds a definition to the index of its group, by the names of its crd.
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

// exit removes a definition from the index of its group. Call it before its crd changes.
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

// look marks all definitions of a group as dirty.
func (c *Controller) look(group string) {
	if g := c.namesakes[group]; g != nil {
		for k := range g.members {
			k.dirty = true
		}
	}
}

// lookFor marks the definitions of a group as dirty that ask for or have one of the names. It also marks those that are not
// served as they ask to be, for whatever reason.
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

// taken returns the names that a definition asks for or has, but may not have.
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

// used are the names of a group that belong to resources without a definition. resources and kinds are their resources and kinds;
// names and kindNames are all names with which a definition could conflict.
type used struct {
	resources, kinds map[string]bool
	names, kindNames map[string]bool
}

func (u *used) equal(other *used) bool {
	return maps.Equal(u.resources, other.resources) && maps.Equal(u.kinds, other.kinds) &&
		maps.Equal(u.names, other.names) && maps.Equal(u.kindNames, other.kindNames)
}

// compareOthers updates others, and marks the definitions as dirty in whose groups others changed.
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

// freshen calls compareOthers if others may have changed.
func (c *Controller) freshen() {
	select {
	case <-c.changed:
		c.compareOthers()
	default:
	}
}

// rank returns a number that orders claims. Definitions without a claim come last.
func rank(k *known) int64 {
	if k.claim == 0 {
		return int64(^uint64(0) >> 1)
	}
	return k.claim
}

func sameNames(a, b apiextensionsv1.CustomResourceDefinitionNames) bool {
	return equality.Semantic.DeepEqual(a, b)
}
