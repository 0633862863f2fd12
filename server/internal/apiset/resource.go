package apiset

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server/registry"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Group is an API group; see server.Group.
type Group struct {
	// Name is the name of the group; "" is the core group.
	Name string
	// Versions are the versions of the group.
	Versions []Version
	// Scheme is the scheme in which the kinds are registered; nil is that of the Set.
	Scheme *runtime.Scheme
	// Conversions add the conversions of the kinds to a scheme.
	Conversions []func(s *runtime.Scheme) error
}

// Version is one version of a group.
type Version struct {
	// Name is the name of the version.
	Name string
	// Resources are the kinds of the version.
	Resources []Resource
	// Docs has the doc comments of the types; nil means none.
	Docs apischema.Source
}

// Resource is a kind as one version serves it. server.KindOptions documents the fields that it has, too.
type Resource struct {
	Kind, Plural, Singular string   // the names of the kind and its resource
	ShortNames, Categories []string // further names for clients
	Namespaced             bool     // the objects are in namespaces

	Declared         bool                                                       // the program declares the kind by a Go type of its own
	GoType, ListType reflect.Type                                               // the Go types of objects and lists
	Register         func(s *runtime.Scheme, gvk schema.GroupVersionKind) error // registers the kind; nil in the zero Resource
	Strategy         registry.Erased                                            // the rules of the kind
	PlainStrategy    bool                                                       // the strategy is zero
	Selectable       []string                                                   // names of all fields that can be selected by
	Shown            []string                                                   // KindOptions.ShownFields, or all of Selectable: see served.chooseShown
	Renamed          map[string]string                                          // KindOptions.RenamedFields
	StoragePath      string                                                     // below /registry; "": the default
	IsHub, IsStored  bool                                                       // KindOptions.Hub and Stored
	NoStatus         bool                                                       // there is no /status
	Verbs            []string                                                   // nil: all that are possible
	TTL              time.Duration                                              // after the last write; 0: none

	NoCache                  bool     // reads are answered from the backend
	IndexFields, IndexLabels []string // indexes of the cache

	Scale        *registry.Scale        // nil: no /scale
	Schema       runtime.ObjectSchema   // of a kind without a Go type; may be nil
	Unserved     bool                   // clients do not see the version
	Table        registry.Tabler        // nil: the default columns
	Custom       any                    // the Storage of its own; nil: the backend
	HubWrites    bool                   // Custom accepts only objects whose Go type is GoType
	Subresources map[string]Subresource // by name
	Deprecated   string                 // the text of a Warning header; "": none
	Mistake      error                  // an error in the options, which Exchange returns
}

// Described is a Tabler whose columns can have descriptions from doc comments.
type Described interface {
	// DescribedBy returns the Tabler with the descriptions of docs.
	DescribedBy(docs *apischema.Docs) registry.Tabler
}

// Subresource is a resource below an object's path.
type Subresource struct {
	// Storage implements capabilities of package registry.
	Storage any
	Kind    schema.GroupVersionKind // zero: the kind of the resource

	KindName string // the kind that Register registers
	// Register registers the kind in a version; nil: Kind is registered already.
	Register func(s *runtime.Scheme, gv schema.GroupVersion) (schema.GroupVersionKind, error)
}

// RegisterOnce registers the kind, unless the scheme, which the program may have given, has the kind with the same type already.
func RegisterOnce[P runtime.Pointer[T], T any](s *runtime.Scheme, gvk schema.GroupVersionKind, opts runtime.KindOptions[P]) error {
	if k := s.Lookup(gvk); k != nil && k.Type == reflect.TypeFor[T]() {
		if opts.Default != nil || opts.SelectableFields != nil || opts.RenamedFields != nil || opts.SelectableFrom != nil || opts.Schema != nil || opts.Convert != nil || opts.ConvertAll != nil || opts.ListKind != "" {
			return fmt.Errorf("%s is in the server's scheme already, so Default, SelectableFields, RenamedFields, SelectableFrom, Schema, Convert, ConvertAll and ListKind would come too late: remove them, or the earlier registration or import", gvk)
		}
		return nil
	}
	return runtime.Register(s, gvk, opts)
}

// check refuses a resource that cannot be served.
func (r Resource) check(gv schema.GroupVersion) error {
	where := func(format string, args ...any) error {
		return fmt.Errorf("resource %s in %s: %s", r.Plural, gv, fmt.Sprintf(format, args...))
	}
	switch {
	case r.Register == nil && r.Mistake != nil:
		return fmt.Errorf("a resource in %s: %w", gv, r.Mistake)
	case r.Register == nil:
		return fmt.Errorf("a resource in %s is the zero Resource; make it with server.Kind", gv)
	case len(validation.IsDNS1035Label(r.Plural)) > 0 || len(validation.IsDNS1035Label(strings.ToLower(r.Kind))) > 0:
		return where("kind %q and plural %q must not be empty, and consist of letters, digits and '-'; the plural must be lower case", r.Kind, r.Plural)
	case r.Mistake != nil:
		return where("%v", r.Mistake)
	case r.Custom != nil && (!r.PlainStrategy || r.Selectable != nil || r.Renamed != nil || r.Shown != nil || r.Scale != nil || r.StoragePath != "" || r.IsStored || r.TTL != 0 || r.hasCacheOptions()):
		return where("Storage or Computed is set, so Strategy, SelectableFields, ShownFields, RenamedFields, Scale, StoragePath, Stored, TTL, NoCache, IndexFields and IndexLabels mean nothing; remove them")
	}
	if r.Custom != nil && IsNil(r.Custom) {
		return where("Storage is a nil %T; give it a value, or leave Storage out to keep the objects in the backend", r.Custom)
	}
	if err := r.checkDeclared(gv); err != nil {
		return where("%v", err)
	}
	if r.TTL < 0 {
		return where("TTL %s: it must not be negative; 0 keeps objects", r.TTL)
	}
	if err := r.checkIndexes(); err != nil {
		return where("%v", err)
	}
	for name, sub := range r.Subresources {
		if name == "" || strings.ContainsAny(name, "/%. ") || IsNil(sub.Storage) {
			return where("subresource %q: want a name fit for a path, and a Storage that is not nil", name)
		}
	}
	return nil
}

func (r *Resource) hasCacheOptions() bool {
	return r.NoCache || r.IndexFields != nil || r.IndexLabels != nil
}

// checkIndexes refuses indexes that cannot be used.
func (r *Resource) checkIndexes() error {
	if r.NoCache && (r.IndexFields != nil || r.IndexLabels != nil) {
		return errors.New("NoCache is set, so IndexFields and IndexLabels mean nothing; remove them")
	}
	for i, name := range r.IndexFields {
		switch {
		case name != "metadata.name" && name != "metadata.namespace" && !slices.Contains(r.Selectable, name):
			return fmt.Errorf("IndexFields: %q cannot be selected by; add it to SelectableFields, or remove it here", name)
		case slices.Contains(r.IndexFields[:i], name):
			return fmt.Errorf("IndexFields: %q comes twice; remove one", name)
		}
	}
	for i, name := range r.IndexLabels {
		switch {
		case len(validation.IsQualifiedName(name)) > 0:
			return fmt.Errorf("IndexLabels: %q is no key of a label, such as app or example.com/team", name)
		case slices.Contains(r.IndexLabels[:i], name):
			return fmt.Errorf("IndexLabels: %q comes twice; remove one", name)
		}
	}
	return nil
}
