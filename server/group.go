package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/internal/apiset"
	"github.com/keelson-dev/keelson/server/registry"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is an API group: everything below /apis/<name>, or /api for the core group, whose name is "".
type Group struct {
	Name     string
	Versions []Version
	// Scheme is what the kinds are registered in; nil is the server's. Kinds in a scheme of their own are known to this
	// group's resources alone, and a program that serves others in their place, by Host.Replace with a new Scheme, does not
	// disturb requests under way. It is used for one call of Serve or Replace.
	Scheme *runtime.Scheme
	// Conversions join the versions of a kind that has several: one for each version that is not the hub; see Convert. The
	// hub may be in another group, which is then served in the same call: both groups have the same objects.
	Conversions []Conversion
}

// Version is one version of a group.
type Version struct {
	Name      string // such as "v1" or "v1beta1"
	Resources []Resource
	// Docs is Go source which holds the version's types, as an embed.FS has it: their doc comments become the
	// descriptions in OpenAPI and kubectl explain. nil: only types with SwaggerDoc are described.
	Docs fs.FS
}

// Resource is a kind as one version serves it. Make it with Kind; the zero Resource is refused.
type Resource struct{ of apiset.Resource }

// KindOptions refines Kind. The zero value is a namespaced kind, stored, with every verb, and with /status if
// the type has a status.
type KindOptions[P runtime.Object] struct {
	// Plural names the resource in paths. "" is the kind in lower case with the ending that apimachinery gives it, which
	// is English for most: widgets, policies, classes, but boxs and buoies; say "boxes" and "buoys".
	Plural string
	// Singular is an alias for clients; "" is the kind in lower case.
	Singular string
	// ListKind is the kind of lists of a kind without a Go type; "" is the kind with "List" appended.
	ListKind   string
	ShortNames []string
	// Categories are groups of resources for clients, such as "all" of kubectl get all.
	Categories    []string
	ClusterScoped bool

	// Strategy makes the kind different from others. What holds for every object is simpler said in struct tags of the
	// Go type: see package constraint of runtime. An object is judged by those of the hub, by those of the version that
	// the request came in, and by Strategy.
	Strategy registry.Strategy[P]
	// Default sets defaults in place, after those of struct tags and after every decoding; it must be idempotent. Each
	// version has its own. An object also gets those of the hub when it was read in another version, and those of the
	// version that is stored: what is absent should mean the same in all.
	Default func(obj P)
	// SelectableFields are dotted JSON paths for field selectors, such as "spec.color", besides metadata.name and
	// metadata.namespace. Each leads to a string, a boolean or an integer. Of a kind with several versions, those of the
	// hub are the ones that can be selected by; another version may have the same paths or some of them, and others by
	// RenamedFields.
	SelectableFields []string
	// RenamedFields are selectable fields that this version has at another path than the hub: the key is the path here,
	// the value the path of one of the hub's SelectableFields, as in {"spec.colour": "spec.color"}. Requests in this
	// version select by the key, and all versions find objects by it that are stored in this one. Both fields are
	// strings, both booleans or both integers, and hold the same for one object. The hub has none.
	//
	// A selectable field of the hub that another version has neither at the same path and of such a type, nor renamed,
	// is found in objects stored in that version by converting each of them, which makes such selectors slow while
	// there are any.
	RenamedFields map[string]string
	// SelectableFrom are further fields for selectors whose name is no path of a value: by name, the paths of strings, of
	// which the first that is not empty is compared, as in {"source": {"source.component", "reportingComponent"}} of v1
	// Event. Only the hub has them.
	SelectableFrom map[string][]string
	// NoStatus serves no /status: the field status, if there is one, is an ordinary field. Without it a type with
	// a status (other than struct{}) has /status, and only there can it be written.
	NoStatus bool
	// Scale serves /scale, in every version. It is set in the hub, and its paths (".spec.replicas") are the hub's.
	Scale *registry.Scale
	// Columns are the table's columns after Name, or all of them if one has the Format "name": that one is Name. nil is
	// what struct tags say (print:"Size", see package printer of runtime), and Age.
	Columns []Column[P]
	// Subresources are further ones, by name.
	Subresources map[string]Subresource

	// Verbs are those that the resource is served with, such as all but deletecollection; nil is all it is capable of.
	// Each version has its own. kubectl, which asks the OpenAPI of PATCH whether the server validates fields, creates
	// objects of a kind without patch only with --validate=false.
	Verbs []string
	// TTL deletes every object that long after it was written last, in any version; 0 keeps them. It is the hub's.
	TTL time.Duration

	// NoCache answers every read and watch of the kind from the storage. Without it the objects are kept in memory
	// from the first request on, at about one and a half times the size of their JSON, so that reads and watches of
	// them do not burden the storage. It is for a kind that is too large for that, or that is written and hardly read.
	NoCache bool
	// IndexFields, each one of SelectableFields or metadata.name or metadata.namespace, and IndexLabels, keys of
	// labels, are what the cache is indexed by: a list that selects one value costs what it finds, and a change
	// concerns only the watches that select its value. An index takes some 60 bytes an object.
	IndexFields, IndexLabels []string

	// Storage, when set, serves the resource instead of a backend: any value that implements some of the
	// capabilities in server/registry (Getter, Lister, Creater, ...) is served with exactly those verbs. Strategy,
	// SelectableFields, RenamedFields, Scale, StoragePath, Stored, TTL, NoCache, IndexFields and IndexLabels are then
	// refused. Policy.Admission judges its writes and connections too, unless it is a registry, which has its own.
	Storage any
	// StoragePath is where in the backend the objects live, below /registry; "" is <group>/<plural>, or <plural>
	// in the core group.
	StoragePath string
	// Hub makes this version the one that the others are converted to; without it that is the first version listed.
	// Strategy, NoStatus, Scale, StoragePath, TTL, NoCache, IndexFields and IndexLabels are the hub's alone to have, but where
	// versions have a Schema, NoStatus, Scale, SelectableFields and IndexFields are each version's own. Plural and
	// ClusterScoped are the same in all versions. All other options are each version's own, and none is inherited:
	// ShortNames, Categories and Columns are given again where they are wanted.
	Hub bool
	// Schema says what the objects of a kind without a Go type are like in this version: see runtime.KindOptions. It is
	// published in OpenAPI, and merged by, when it is a Describer of package schema of runtime.
	Schema runtime.ObjectSchema
	// Convert converts between the versions of a kind without a Go type: see runtime.KindOptions. All of them have the same.
	Convert runtime.ConvertUntyped
	// ConvertAll is Convert for many objects at once, and instead of it: lists and watches in another version than the one that
	// is stored make few calls of many objects.
	ConvertAll runtime.ConvertAllUntyped
	// Table makes the tables of the kind, instead of Columns.
	Table registry.Tabler
	// Unserved keeps the version from clients, who are answered as if there were none, while objects that are stored in it
	// are read, and others stored in it.
	Unserved bool
	// Stored makes this version the one that objects are stored in; without it that is the hub. It may be moved to
	// another version at any time: objects stored before are read in whatever registered version they are in, and are
	// stored in this one by their next update, or all at once by Server.MigrateStorage. Before a version is removed from
	// a program, move Stored away from it in an earlier release, and migrate. While several processes serve one storage,
	// all must know the version before one of them stores in it. A new default belongs into all versions: selectors look
	// at what is stored.
	Stored bool
	// Deprecated, when not empty, is shown in a Warning header with every answer of this version, such as
	// "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget".
	Deprecated string
}

// Column is a column of a kind's table, as kubectl get prints it. The columns of a table have different names, in lower
// case too: none is called Name, unless one has the Format "name", which replaces that column.
type Column[P runtime.Object] struct {
	Name        string
	Type        string // OpenAPI type: "string", "integer", "number", "boolean" or "date"; "" is "string"
	Format      string
	Description string
	Priority    int32 // above 0: only in wide tables
	// Value makes the cell: a string, a number, a boolean or nil. obj is of the version of the request. A bookmark of a
	// watch has an empty object, without defaults; if Value panics on that one, its cells are nil.
	Value func(obj P) any
}

// Subresource is served below an object's path.
type Subresource struct {
	// Storage is any value that implements some of the capabilities in server/registry. One that is a registry.Opener is
	// given the registry of the resource.
	Storage any
	// Kind of its bodies and answers; zero is the kind of the resource. Another kind must be known to the
	// server's scheme; SubresourceKind registers one.
	Kind schema.GroupVersionKind

	kind     string // what register registers
	register func(s *runtime.Scheme, gv schema.GroupVersion) (schema.GroupVersionKind, error)
}

// SubresourceKind is a Subresource whose bodies are of Go type T, registered as kind in the version of the
// resource.
func SubresourceKind[P runtime.Pointer[T], T any](kind string, storage any) Subresource {
	return Subresource{Storage: storage, kind: kind, register: func(s *runtime.Scheme, gv schema.GroupVersion) (schema.GroupVersionKind, error) {
		gvk := gv.WithKind(kind)
		return gvk, apiset.RegisterOnce[P](s, gvk, runtime.KindOptions[P]{})
	}}
}

// Kind describes a resource whose objects are of Go type T: Kind[*Widget]("Widget", ...). Mistakes are reported
// by New.
//
// Kind[*unstructured.Unstructured]("Gadget", ...) describes one without a Go type. It is served as kube-apiserver serves a
// custom resource whose schema is `type: object` with x-kubernetes-preserve-unknown-fields: every field is kept, the member
// status is written by /status alone unless NoStatus is set, a PUT needs a resourceVersion, and versions differ in
// apiVersion alone, without a Conversion. With a Schema it is served as a custom resource with such a schema is.
func Kind[P runtime.Pointer[T], T any](kind string, opts KindOptions[P]) Resource {
	return describe(kind, reflect.TypeFor[T](), reflect.TypeFor[runtime.List[T]](), opts, func(s *runtime.Scheme, gvk schema.GroupVersionKind) error {
		return apiset.RegisterOnce[P](s, gvk, runtime.KindOptions[P]{
			Default: opts.Default, SelectableFields: opts.SelectableFields, RenamedFields: opts.RenamedFields, SelectableFrom: opts.SelectableFrom, Hub: opts.Hub,
			ListKind: opts.ListKind, Schema: opts.Schema, Convert: opts.Convert, ConvertAll: opts.ConvertAll,
		})
	})
}

func describe[P runtime.Object](kind string, goType, listType reflect.Type, opts KindOptions[P], register func(*runtime.Scheme, schema.GroupVersionKind) error) Resource {
	gvr, singular := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	r := apiset.Resource{
		Kind:          kind,
		Plural:        cmp.Or(opts.Plural, gvr.Resource),
		Singular:      cmp.Or(opts.Singular, singular.Resource),
		ShortNames:    opts.ShortNames,
		Categories:    opts.Categories,
		Namespaced:    !opts.ClusterScoped,
		GoType:        goType,
		ListType:      listType,
		Register:      register,
		Strategy:      registry.Erase(opts.Strategy),
		PlainStrategy: reflect.ValueOf(opts.Strategy).IsZero(),
		Selectable:    slices.Concat(opts.SelectableFields, slices.Sorted(maps.Keys(opts.SelectableFrom))),
		Renamed:       opts.RenamedFields,
		StoragePath:   opts.StoragePath,
		IsHub:         opts.Hub,
		IsStored:      opts.Stored,
		NoStatus:      opts.NoStatus,
		Verbs:         slices.Clone(opts.Verbs),
		TTL:           opts.TTL,
		NoCache:       opts.NoCache,
		IndexFields:   opts.IndexFields,
		IndexLabels:   opts.IndexLabels,
		Scale:         opts.Scale,
		Schema:        opts.Schema,
		Unserved:      opts.Unserved,
		Custom:        opts.Storage,
		Subresources:  map[string]apiset.Subresource{},
		Deprecated:    opts.Deprecated,
	}
	for name, sub := range opts.Subresources {
		r.Subresources[name] = apiset.Subresource{Storage: sub.Storage, Kind: sub.Kind, KindName: sub.kind, Register: sub.register}
	}
	switch {
	case opts.Table != nil && opts.Columns != nil:
		r.Mistake = errors.New("the options Table and Columns are both set; remove one")
	case opts.Table != nil:
		r.Table = opts.Table
	case opts.Columns != nil:
		r.Table = columns[P](opts.Columns)
		r.Mistake = columns[P](opts.Columns).check()
	default:
		r.Table, r.Mistake = printedOf(r.GoType)
	}
	return Resource{r}
}

// described is what the set of served kinds needs to know of groups.
func described(groups []Group) []apiset.Group {
	out := make([]apiset.Group, 0, len(groups))
	for _, g := range groups {
		one := apiset.Group{Name: g.Name, Scheme: g.Scheme}
		for _, v := range g.Versions {
			version := apiset.Version{Name: v.Name, Docs: v.Docs}
			for _, r := range v.Resources {
				version.Resources = append(version.Resources, r.of)
			}
			one.Versions = append(one.Versions, version)
		}
		for _, c := range g.Conversions {
			one.Conversions = append(one.Conversions, c.add)
		}
		out = append(out, one)
	}
	return out
}

// Conversion joins one version of a kind to its hub; make it with Convert.
type Conversion struct {
	add func(s *runtime.Scheme) error
}

// Convert joins the version of a kind whose Go type is S to its hub, whose Go type is H; see
// runtime.AddConversion for what the functions must do. Test with package roundtrip of runtime that they lose nothing:
// a server cannot see that they do.
func Convert[SP runtime.Pointer[S], HP runtime.Pointer[H], S, H any](toHub func(in SP, out HP) error, fromHub func(in HP, out SP) error) Conversion {
	return Conversion{add: func(s *runtime.Scheme) error { return runtime.AddConversion(s, toHub, fromHub) }}
}

// columns makes tables of a kind from its Columns.
type columns[P runtime.Object] []Column[P]

// check refuses columns that could show nothing, or that could not be told apart, also from Name, which is there anyway.
func (c columns[P]) check() error {
	names := map[string]bool{}
	for i, col := range c {
		key := strings.ToLower(col.Name)
		switch {
		case col.Name == "" || col.Value == nil:
			return fmt.Errorf("column %d, %q, needs a Name and a Value", i, col.Name)
		case key == "name" && !c.withName():
			return fmt.Errorf("column %d, %q: every table has a column of that name; choose another, or give it the Format name to replace that one", i, col.Name)
		case names[key]:
			return fmt.Errorf("column %d, %q: another column has that name; choose another", i, col.Name)
		case !slices.Contains([]string{"", "string", "integer", "number", "boolean", "date"}, col.Type):
			return fmt.Errorf("column %d, %q: there is no Type %q; want string, integer, number, boolean or date", i, col.Name, col.Type)
		}
		names[key] = true
	}
	return nil
}

// withName reports whether a column is Name.
func (c columns[P]) withName() bool {
	return slices.ContainsFunc(c, func(col Column[P]) bool { return col.Format == "name" })
}

// Columns implements registry.Tabler.
func (c columns[P]) Columns() []metav1.TableColumnDefinition {
	var out []metav1.TableColumnDefinition
	if !c.withName() {
		out = append(out, nameColumn())
	}
	for _, col := range c {
		def := metav1.TableColumnDefinition{Name: col.Name, Type: col.Type, Format: col.Format, Description: col.Description, Priority: col.Priority}
		if def.Type == "" {
			def.Type = "string"
		}
		out = append(out, def)
	}
	return out
}

// Row implements registry.Tabler.
func (c columns[P]) Row(_ context.Context, obj runtime.Object) ([]any, error) {
	o, ok := obj.(P)
	if !ok {
		return nil, fmt.Errorf("table row: %T is not the kind's Go type", obj)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	var cells []any
	if !c.withName() {
		cells = append(cells, accessor.GetName())
	}
	for _, col := range c {
		cells = append(cells, col.Value(o))
	}
	return cells, nil
}

// AgeColumn is the usual last column: how long ago the object was created.
func AgeColumn[P interface {
	runtime.Object
	metav1.Object
}]() Column[P] {
	return Column[P]{
		Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		Value: func(obj P) any { return ageOf(obj, time.Now()) },
	}
}
