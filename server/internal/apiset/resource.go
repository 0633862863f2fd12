package apiset

import (
	"errors"
	"fmt"
	"io/fs"
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

// Group is an API group, as server.Group has it.
type Group struct {
	Name     string
	Versions []Version
	// Scheme is what the kinds are registered in; nil is the Set's.
	Scheme *runtime.Scheme
	// Conversions add the conversions of the kinds to a scheme.
	Conversions []func(s *runtime.Scheme) error
}

// Version is one version of a group.
type Version struct {
	Name      string
	Resources []Resource
	Docs      fs.FS // Go source with the doc comments of the types; nil: none
}

// Resource is a kind as one version serves it: server.KindOptions says what the fields mean.
type Resource struct {
	Kind, Plural, Singular string
	ShortNames, Categories []string
	Namespaced             bool

	GoType, ListType reflect.Type
	Register         func(s *runtime.Scheme, gvk schema.GroupVersionKind) error // nil: of the zero Resource
	Strategy         registry.Erased
	PlainStrategy    bool     // no strategy was given
	Selectable       []string // all names of fields that can be selected by
	Renamed          map[string]string
	StoragePath      string
	IsHub, IsStored  bool
	NoStatus         bool
	Verbs            []string
	TTL              time.Duration

	NoCache                  bool
	IndexFields, IndexLabels []string

	Scale        *registry.Scale
	Schema       runtime.ObjectSchema
	Unserved     bool
	Table        registry.Tabler
	Custom       any // serves instead of the backend
	Subresources map[string]Subresource
	Deprecated   string
	Mistake      error // found before; reported by Exchange
}

// Described is a Tabler whose columns have descriptions from doc comments.
type Described interface {
	DescribedBy(docs *apischema.Docs) registry.Tabler
}

// Subresource is served below an object's path.
type Subresource struct {
	Storage any
	Kind    schema.GroupVersionKind // zero: that of the resource

	KindName string // what Register registers
	Register func(s *runtime.Scheme, gv schema.GroupVersion) (schema.GroupVersionKind, error)
}

// RegisterOnce registers the kind unless the scheme, given by the program, knows it by that type already.
func RegisterOnce[P runtime.Pointer[T], T any](s *runtime.Scheme, gvk schema.GroupVersionKind, opts runtime.KindOptions[P]) error {
	if k := s.Lookup(gvk); k != nil && k.Type == reflect.TypeFor[T]() {
		if opts.Default != nil || opts.SelectableFields != nil || opts.RenamedFields != nil || opts.SelectableFrom != nil || opts.Schema != nil || opts.Convert != nil || opts.ConvertAll != nil || opts.ListKind != "" {
			return fmt.Errorf("%s is in the server's scheme already, so Default, SelectableFields, RenamedFields, SelectableFrom, Schema, Convert, ConvertAll and ListKind would come too late: remove them, or the earlier registration or import", gvk)
		}
		return nil
	}
	return runtime.Register(s, gvk, opts)
}

// check refuses what cannot be served.
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
	case r.Custom != nil && (!r.PlainStrategy || r.Selectable != nil || r.Renamed != nil || r.Scale != nil || r.StoragePath != "" || r.IsStored || r.TTL != 0 || r.hasCacheOptions()):
		return where("Storage is set, so Strategy, SelectableFields, RenamedFields, Scale, StoragePath, Stored, TTL, NoCache, IndexFields and IndexLabels mean nothing; remove them")
	}
	if r.TTL < 0 {
		return where("TTL %s: it must not be negative; 0 keeps objects", r.TTL)
	}
	if err := r.checkIndexes(); err != nil {
		return where("%v", err)
	}
	for name, sub := range r.Subresources {
		if name == "" || strings.ContainsAny(name, "/%. ") || sub.Storage == nil {
			return where("subresource %q: want a name fit for a path, and Storage", name)
		}
	}
	return nil
}

func (r *Resource) hasCacheOptions() bool {
	return r.NoCache || r.IndexFields != nil || r.IndexLabels != nil
}

// checkIndexes refuses indexes that nothing could use.
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
