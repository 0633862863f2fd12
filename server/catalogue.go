package server

import (
	"cmp"
	"slices"

	"github.com/keelson-dev/keelson/authn"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Catalogue says what a server serves, for who looks after objects of all kinds. It is good for as long
// as the server. All methods may be called concurrently.
type Catalogue struct {
	s    *Server
	user *authn.User // whose calls those of Objects are
}

// Catalogue says what the server serves.
func (s *Server) Catalogue() *Catalogue { return &Catalogue{s, authn.System()} }

// As returns the catalogue for work that is done as a user, whom admission and strategies see; without it that is
// authn.System().
func (c *Catalogue) As(user *authn.User) *Catalogue { return &Catalogue{c.s, user} }

// ServedKind is one kind that is served, in all its versions.
type ServedKind struct {
	// Kind and Resource are those of the hub version, or if that is not served, of another.
	Kind     schema.GroupVersionKind
	Resource schema.GroupVersionResource
	// Kinds are all that clients know the objects by: each version that is served, of each group.
	Kinds      []schema.GroupVersionKind
	Namespaced bool
	// Singular, ShortNames and ListKind are those of that version too.
	Singular   string
	ShortNames []string
	ListKind   string
	// Verbs are those of that version, and Subresources the names of its subresources, sorted.
	Verbs, Subresources []string
	// Objects are the objects themselves.
	Objects *Objects
}

// Changed returns a channel that is closed when what is served changes next. Who follows the catalogue asks for it
// before Kinds.
func (c *Catalogue) Changed() <-chan struct{} {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.change
}

// Kinds lists what is served now, by group and resource. The slices are the caller's own.
func (c *Catalogue) Kinds() []ServedKind {
	c.s.mu.Lock()
	if c.s.kinds == nil {
		c.s.kinds = c.s.catalogued()
	}
	out := slices.Clone(c.s.kinds)
	c.s.mu.Unlock()
	for i := range out {
		k := &out[i]
		objects := *k.Objects
		objects.user = c.user
		k.Objects = &objects
		k.Kinds, k.ShortNames, k.Verbs, k.Subresources = slices.Clone(k.Kinds), slices.Clone(k.ShortNames), slices.Clone(k.Verbs), slices.Clone(k.Subresources)
	}
	return out
}

// catalogued makes the catalogue. The caller holds mu.
func (s *Server) catalogued() []ServedKind {
	var out []ServedKind
	at := map[schema.GroupVersionKind]int{} // by hub
	for _, r := range s.served {
		if r.unserved || r.pending {
			continue
		}
		i, ok := at[r.hub]
		if !ok {
			i = len(out)
			at[r.hub] = i
			out = append(out, ServedKind{})
		}
		kinds := append(out[i].Kinds, r.gvk)
		if r.gvk == r.hub || !ok {
			out[i] = r.catalogued(s)
		}
		out[i].Kinds = kinds
	}
	slices.SortFunc(out, func(a, b ServedKind) int {
		return cmp.Or(cmp.Compare(a.Resource.Group, b.Resource.Group), cmp.Compare(a.Resource.Resource, b.Resource.Resource))
	})
	return out
}

// catalogued describes a kind by one of its versions, but for Kinds. The caller holds the server's mu.
func (r *served) catalogued(s *Server) ServedKind {
	if r.said.kind == nil {
		k := &ServedKind{Kind: r.gvk, Resource: r.gvr, Namespaced: r.namespaced, Singular: r.singular, ShortNames: r.shortNames, ListKind: r.gvk.Kind + "List"}
		if kind := r.scheme.Lookup(r.gvk); kind != nil {
			k.ListKind = kind.ListGVK.Kind
		}
		k.Verbs, k.Subresources, k.Objects = r.handler.Verbs(""), r.subNames(), s.objectsOf(r)
		r.said.kind = k
	}
	return *r.said.kind
}
