// Package catalogue lists the kinds that a server serves, and gives access to the metadata of the objects of all kinds, also of
// kinds with a Storage of the program.
//
// It is for programs that work on all kinds, such as a garbage collector, a controller of namespaces or a tool.
// server.Server.Catalogue and server.Host.Catalogue return a catalogue.
package catalogue

import (
	"slices"

	"github.com/keelson-dev/keelson/authn"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Source is the list of served kinds that a Catalogue reads. All methods may be called concurrently.
type Source interface {
	// Kinds returns the kinds that are served now, ordered by group and resource. The slice must not be changed.
	Kinds() []Kind
	// Changed returns a channel that is closed when the list of kinds changes next.
	Changed() <-chan struct{}
}

// Catalogue lists the kinds that a server serves. It is valid as long as the server. All methods may be called concurrently.
type Catalogue struct {
	of   Source
	user *authn.User // the user of the calls of Objects
}

// New returns the catalogue of a server, for work of the user authn.System().
func New(of Source) *Catalogue { return &Catalogue{of, authn.System()} }

// As returns the catalogue for work of another user. Admission and strategies see that user.
func (c *Catalogue) As(user *authn.User) *Catalogue { return &Catalogue{c.of, user} }

// Kind is one kind that is served, in all its versions.
type Kind struct {
	// Kind is the kind in its hub version or, if that is not served, in another version.
	Kind schema.GroupVersionKind
	// Resource is the resource of Kind, in the same version.
	Resource schema.GroupVersionResource
	// Kinds are all kinds that clients use for the objects: one for each version that is served, in each group.
	Kinds []schema.GroupVersionKind
	// Namespaced says that the objects are in namespaces.
	Namespaced bool
	// Singular is the singular name of the resource, in the version of Kind.
	Singular string
	// ShortNames are the short names of the resource, in the version of Kind.
	ShortNames []string
	// ListKind is the kind of lists, in the version of Kind.
	ListKind string
	// Verbs are the verbs of the version of Kind. Subresources are the names of its subresources, sorted.
	Verbs, Subresources []string
	// Objects gives access to the objects.
	Objects *Objects
}

// Changed returns a channel that is closed when the list of kinds changes next. To miss no change, call Changed before
// [Catalogue.Kinds].
func (c *Catalogue) Changed() <-chan struct{} { return c.of.Changed() }

// Kinds returns the kinds that are served now, ordered by group and resource. The caller may change the slices.
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
