// Package catalogue says what a server serves, and reaches the objects of all kinds by their metadata, whatever serves them: for a
// garbage collector, a controller of namespaces, a tool. A server makes it: server.Server.Catalogue and server.Host.Catalogue.
package catalogue

import (
	"slices"

	"github.com/keelson-dev/keelson/authn"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Source is who knows what is served. All methods may be called concurrently.
type Source interface {
	// Kinds lists what is served now, by group and resource. Nobody changes what it returns.
	Kinds() []Kind
	// Changed returns a channel that is closed when what is served changes next.
	Changed() <-chan struct{}
}

// Catalogue says what a server serves, for who looks after objects of all kinds. It is good for as long
// as the server. All methods may be called concurrently.
type Catalogue struct {
	of   Source
	user *authn.User // whose calls those of Objects are
}

// New returns the catalogue of a server, for work that is done as authn.System().
func New(of Source) *Catalogue { return &Catalogue{of, authn.System()} }

// As returns the catalogue for work that is done as a user, whom admission and strategies see; without it that is
// authn.System().
func (c *Catalogue) As(user *authn.User) *Catalogue { return &Catalogue{c.of, user} }

// Kind is one kind that is served, in all its versions.
type Kind struct {
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
func (c *Catalogue) Changed() <-chan struct{} { return c.of.Changed() }

// Kinds lists what is served now, by group and resource. The slices are the caller's own.
func (c *Catalogue) Kinds() []Kind {
	out := slices.Clone(c.of.Kinds())
	for i := range out {
		k := &out[i]
		objects := *k.Objects
		objects.user = c.user
		k.Objects = &objects
		k.Kinds, k.ShortNames, k.Verbs, k.Subresources = slices.Clone(k.Kinds), slices.Clone(k.ShortNames), slices.Clone(k.Verbs), slices.Clone(k.Subresources)
	}
	return out
}
