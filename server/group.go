package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server/internal/apiset"
	"github.com/keelson-dev/keelson/server/registry"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is an API group: everything below /apis/<name>, or below /api for the core group, whose name is "".
type Group struct {
	// Name is the name of the group, such as "example.com". "" is the core group.
	Name string
	// Versions are the versions of the group, in any order.
	Versions []Version
	// Scheme is the scheme in which the kinds are registered. nil is the server's scheme. Kinds in another scheme are visible
	// only to the resources of this group. A program can then replace them by Host.Replace with a new Scheme, without effects on
	// requests that have begun. A Scheme must be used for only one call of Host.Serve or Host.Replace.
	Scheme *runtime.Scheme
	// Conversions join the versions of a kind that has several versions: one Conversion for each version that is not the hub; see
	// Convert. The hub may be in another group. Both groups then have the same objects, and have to be served in the same call.
	Conversions []Conversion
}

// Version is one version of a group. Each version of a kind with Go types has a Go type of its own. One version is the hub: the
// functions of the program, such as those of a Strategy, receive objects in the hub version, and objects of all other versions
// are converted to and from the hub. The hub is the version that is listed first, unless KindOptions.Hub names another one.
// Convert joins each of the other versions to the hub:
//
//	Versions: []server.Version{
//		{Name: "v1", Resources: []server.Resource{server.Kind("Widget", server.KindOptions[*Widget]{})}},
//		{Name: "v1beta1", Resources: []server.Resource{server.Kind("Widget", server.KindOptions[*WidgetV1beta1]{Stored: true})}},
//	},
//	Conversions: []server.Conversion{server.Convert(toV1, fromV1)},
//
// Objects can be read, written, watched and applied in every version, whichever version is stored. Clients prefer the most mature
// version (v1 before v1beta1), in whatever order the versions are listed. Server.MigrateStorage documents how to change the
// version that is stored.
type Version struct {
	Name string // such as "v1" or "v1beta1"
	// Resources are the kinds of this version.
	Resources []Resource
	// Docs has the doc comments of the version's types, which become the descriptions in OpenAPI and kubectl explain: the result
	// of schema.SourceOf (package runtime/schema) for an embed.FS with the Go files. If Docs is nil, only types with a method
	// SwaggerDoc have descriptions.
	Docs apischema.Source
}

// Resource is a kind as one version serves it. Make it with Kind or ImportedKind; the zero Resource is refused.
type Resource struct{ of apiset.Resource }

// KindOptions are the options of Kind. The zero value is a namespaced kind that is stored and served with every verb, and with
// /status if the type has a status.
type KindOptions[P runtime.Object] struct {
	// The options that many kinds need.

	// ClusterScoped is true if the objects are in no namespace.
	ClusterScoped bool
	// Plural is the name of the resource in paths. "" is the kind in lower case with the ending that apimachinery gives it. That
	// ending is correct English for most kinds (widgets, policies, classes). Set Plural for the others: "boxes" and "buoys" in
	// place of boxs and buoies.
	Plural string
	// ShortNames are short names of the resource for clients, such as "po" for pods.
	ShortNames []string
	// Categories are names for groups of resources that clients can use, such as "all" in kubectl get all.
	Categories []string
	// Strategy has the rules of the kind that the tags of its fields cannot express. Rules that hold for every object belong in
	// struct tags of the Go type, such as
	//
	//	Color string `json:"color,omitempty" enum:"red,green" default:"red"`
	//
	// The server enforces the rules in struct tags and publishes them in OpenAPI, and kubectl explains them. Package
	// github.com/keelson-dev/keelson/runtime/constraint lists the tags. An object is checked by the tags of the hub, by the tags
	// of the version of the request, and by Strategy.
	Strategy registry.Strategy[P]
	// Default sets defaults in place. It is called after every decoding, when the defaults of struct tags have been set, and must
	// be idempotent. Each version has its own Default. An object also gets the defaults of the hub if it was read in another
	// version, and the defaults of the version that is stored. An absent field should therefore mean the same in all versions.
	Default func(obj P)
	// Columns are the columns of the table after Name. If one of them has the Format "name", it replaces the column Name, and the
	// table has exactly these columns. nil uses the columns of struct tags (print:"Size", see package printer of runtime), and Age.
	Columns []Column[P]
	// SelectableFields are dotted JSON paths for field selectors, such as "spec.color", besides metadata.name and
	// metadata.namespace. Each path leads to a string, a boolean or an integer. If a kind has several versions, field selectors
	// can use the fields of the hub. Another version may have all or some of the same paths, and others by RenamedFields.
	SelectableFields []string
	// ShownFields are those of SelectableFields that field selectors compare as this version shows the objects: an object that is
	// stored in another version is converted to look at them. They are for a kind without a Go type that has a Schema in each
	// version. If such a kind has Convert or ConvertAll, all SelectableFields of a version that is not the hub are ShownFields, and
	// so are those of the hub if another version is Stored. Set them in the hub as long as objects may be stored in other versions,
	// where Convert would find the fields elsewhere.
	//
	// A list with such a selector looks at all objects in its namespace, and a watch at all changes there. The objects are
	// converted many at a time. The values of the fields are cached, so that lists and watches share them: see Limits.FormBytes.
	// An object that cannot be converted fails the list or ends the watch, as it does without a selector. ShownFields cannot be
	// IndexFields: an index would need the conversion of each object when it is written.
	ShownFields []string
	// NoStatus leaves out /status. Then the field status, if there is one, is an ordinary field. Without NoStatus a type with a
	// status (other than struct{}) has /status, and its status can be written only there.
	NoStatus bool
	// Scale serves /scale, in every version. Only the hub sets it, and its paths (".spec.replicas") are paths of the hub.
	Scale *registry.Scale
	// Subresources are further subresources, by name.
	Subresources map[string]Subresource
	// Computed has the functions of a kind whose objects are not in the storage of the server. The options that are refused with
	// Storage are refused with Computed, too.
	Computed *Computed[P]

	// The options for kinds with several versions.

	// Hub makes this version the hub, to which the other versions are converted. Without it the hub is the first version that is
	// listed.
	//
	// Only the hub may set Strategy, NoStatus, Scale, StoragePath, TTL, NoCache, IndexFields and IndexLabels. In versions with a
	// Schema, each version has its own NoStatus, Scale, SelectableFields and IndexFields. Plural and ClusterScoped are the same
	// in all versions. Each version has its own values of all other options, and inherits none: give ShortNames, Categories and
	// Columns again where they are wanted.
	Hub bool
	// Stored makes this version the one in which objects are stored. Without it objects are stored in the hub version. Stored may
	// be moved to another version at any time. Objects that were stored in another registered version before can still be read.
	// Their next update stores them in this version, and Server.MigrateStorage stores all of them in it.
	//
	// While several processes serve one storage, all must have the version before one of them stores in it. Before a version is
	// removed from a program, move Stored away from it in an earlier release, and migrate. Add a new default to all versions,
	// since selectors are evaluated on the objects as they are stored.
	Stored bool
	// Unserved hides the version from clients: requests are answered as if the version did not exist. Objects that are stored in
	// this version can still be read, and objects may be stored in it.
	Unserved bool
	// Deprecated, when not empty, is the text of a Warning header in every answer of this version, such as "example.com/v1beta1
	// Widget is deprecated; use example.com/v1 Widget".
	Deprecated string
	// RenamedFields are selectable fields that this version has at another path than the hub. The key is the path in this
	// version, and the value is one of the hub's SelectableFields, as in {"spec.colour": "spec.color"}. Requests in this version
	// select by the key. Objects that are stored in this version are then found by requests in all versions. The two fields must
	// have the same type, which is string, boolean or integer, and the same value in one object. The hub has no RenamedFields.
	//
	// A selectable field of the hub may be missing in another version: neither at the same path and of the same type, nor
	// renamed. The server then converts each object that is stored in that version to look at the field. Such selectors are slow
	// while there are such objects.
	RenamedFields map[string]string

	// The options that few kinds need.

	// Singular is an alias for clients; "" is the kind in lower case.
	Singular string
	// ListKind is the kind of lists, for a kind without a Go type. "" is the kind with "List" appended.
	ListKind string
	// Verbs are the verbs that the resource is served with, for example all verbs but deletecollection. nil is every verb that
	// the resource can have. Each version has its own Verbs. Without the verb patch kubectl creates objects only with
	// --validate=false, because it looks at PATCH in the OpenAPI document to find out whether the server validates fields.
	Verbs []string
	// TTL is the time after which an object is deleted, counted from its last write in any version. 0 keeps the objects. Only the
	// hub sets it.
	TTL time.Duration
	// SelectableFrom are further fields for selectors, whose names are not paths. The key is the name, and the value has paths of
	// strings. The first string that is not empty is compared, as in {"source": {"source.component", "reportingComponent"}} of v1
	// Event. Only the hub has SelectableFrom.
	SelectableFrom map[string][]string
	// NoCache answers every read and watch of the kind from the storage. Without it all objects of the kind are kept in memory
	// from the first request on, which takes about one and a half times the size of their JSON. Reads and watches then put no
	// load on the storage. NoCache is for a kind that is too large for memory, or that is written often and hardly read.
	NoCache bool
	// IndexFields are fields (of SelectableFields, or metadata.name or metadata.namespace) and IndexLabels are keys of labels by
	// which the cache is indexed. The cost of a list that selects one value then depends only on the number of objects that have it,
	// and a changed object is compared only with the watches that select its value. An index takes some 60 bytes for each object.
	IndexFields, IndexLabels []string
	// Storage, when set, serves the resource instead of the storage of the server. It is any value that implements some of the
	// capabilities in server/registry (Getter, Lister, Creater, ...), and the resource has exactly the verbs of these
	// capabilities. With Storage these options are refused: Strategy, SelectableFields, SelectableFrom, RenamedFields, Scale,
	// StoragePath, Stored, TTL, NoCache, IndexFields and IndexLabels. Policy.Admission judges writes and connections to Storage
	// too, unless Storage is a registry, which has its own admission. Objects that clients write get the defaults of their struct
	// tags and are validated by these tags, as objects in a backend are.
	Storage any
	// StoragePath is the path of the objects in the storage of the server, below /registry. "" is <group>/<plural>, or <plural>
	// in the core group.
	StoragePath string
	// Table makes the tables of the kind. It is set instead of Columns.
	Table registry.Tabler
	// Schema is the schema of this version, for a kind without a Go type: see runtime.KindOptions. It is published in OpenAPI.
	// Patches and server-side apply merge lists and maps by it if it is a Describer of package runtime/schema.
	Schema runtime.ObjectSchema
	// Convert converts between the versions of a kind without a Go type: see runtime.KindOptions. All versions have the same
	// Convert.
	Convert runtime.ConvertUntyped
	// ConvertAll converts many objects at once, and is set instead of Convert. Lists and watches in a version that is not stored
	// make few calls with many objects.
	ConvertAll runtime.ConvertAllUntyped
}

// Column is a column of a kind's table, as kubectl get prints it. The columns of a table must have different names, where case
// does not count. No column may have the name Name, except one with the Format "name", which replaces the column Name.
type Column[P runtime.Object] struct {
	// Name is the heading of the column.
	Name string
	Type string // OpenAPI type: "string", "integer", "number", "boolean" or "date"; "" is "string"
	// Format is an OpenAPI format for the values, or "name": see Columns of KindOptions.
	Format string
	// Description is the text that describes the column to clients.
	Description string
	Priority    int32 // a column above 0 is only in wide tables
	// Value returns the cell: a string, a number, a boolean or nil. obj is of the version of the request. A bookmark of a watch
	// has an empty object without defaults; if Value panics on that object, the cells of the bookmark are nil.
	Value func(obj P) any
}

// Subresource is a resource below an object's path, such as /status.
type Subresource struct {
	// Storage is any value that implements some of the capabilities in server/registry. If it is a registry.Opener, its method
	// Open is called with the registry of the resource.
	Storage any
	// Kind is the kind of its bodies and answers. The zero Kind is the kind of the resource. Any other kind must be in the
	// server's scheme; SubresourceKind registers one.
	Kind schema.GroupVersionKind

	kind     string // the kind that register registers
	register func(s *runtime.Scheme, gv schema.GroupVersion) (schema.GroupVersionKind, error)
}

// SubresourceKind returns a Subresource whose bodies are of Go type T, registered as kind in the version of the resource.
func SubresourceKind[P runtime.Pointer[T], T any](kind string, storage any) Subresource {
	return Subresource{Storage: storage, kind: kind, register: func(s *runtime.Scheme, gv schema.GroupVersion) (schema.GroupVersionKind, error) {
		gvk := gv.WithKind(kind)
		return gvk, apiset.RegisterOnce[P](s, gvk, runtime.KindOptions[P]{})
	}}
}

// Kind describes a resource whose objects are of Go type T: Kind[*Widget]("Widget", ...). It is served from the storage, with
// every verb, or by KindOptions.Storage with the verbs that this value implements. New and Host.Serve report mistakes in the
// options.
//
// Kind[*unstructured.Unstructured]("Gadget", ...) describes a kind without a Go type. It is served as kube-apiserver serves a
// custom resource whose schema is `type: object` with x-kubernetes-preserve-unknown-fields: every field is kept, the field status
// is written only by /status unless NoStatus is set, and a PUT needs a resourceVersion. Its versions differ only in apiVersion,
// and need no Conversion. With a Schema it is served as a custom resource with that schema.
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
		Declared:      opts.Schema == nil && goType != reflect.TypeFor[unstructured.Unstructured](),
		GoType:        goType,
		ListType:      listType,
		Register:      register,
		Strategy:      registry.Erase(opts.Strategy),
		PlainStrategy: reflect.ValueOf(opts.Strategy).IsZero(),
		Selectable:    slices.Concat(opts.SelectableFields, slices.Sorted(maps.Keys(opts.SelectableFrom))),
		Shown:         opts.ShownFields,
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
		HubWrites:     opts.Computed != nil && (opts.Computed.Create != nil || opts.Computed.Update != nil),
		Subresources:  map[string]apiset.Subresource{},
		Deprecated:    opts.Deprecated,
	}
	for name, sub := range opts.Subresources {
		r.Subresources[name] = apiset.Subresource{Storage: sub.Storage, Kind: sub.Kind, KindName: sub.kind, Register: sub.register}
	}
	if opts.Computed != nil {
		if r.Mistake = opts.Computed.check(opts.Storage); r.Mistake != nil {
			return Resource{r}
		}
		r.Custom = opts.Computed.storage(func() runtime.Object { return reflect.New(listType).Interface().(runtime.Object) })
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

// described converts groups to the form that the set of served kinds needs.
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

// Conversion joins one version of a kind to its hub. Make it with Convert.
type Conversion struct {
	add func(s *runtime.Scheme) error
}

// Convert joins the version of a kind whose Go type is S to its hub, whose Go type is H. See runtime.AddConversion for what the
// functions must do. If a conversion loses a value, the next write in any version removes that value from the stored object, and
// the server cannot see this. Package github.com/keelson-dev/keelson/runtime/conversion keeps values of the hub that another version
// cannot hold. Test the conversions with NewScheme and package github.com/keelson-dev/keelson/runtime/roundtrip.
func Convert[SP runtime.Pointer[S], HP runtime.Pointer[H], S, H any](toHub func(in SP, out HP) error, fromHub func(in HP, out SP) error) Conversion {
	return Conversion{add: func(s *runtime.Scheme) error { return runtime.AddConversion(s, toHub, fromHub) }}
}

// columns makes tables of a kind from its Columns.
type columns[P runtime.Object] []Column[P]

// check refuses columns that can show nothing, and columns that cannot be distinguished from each other or from the column Name.
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

// withName reports whether one of the columns has the Format "name".
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

// AgeColumn returns the usual last column: the time since the object was created.
func AgeColumn[P interface {
	runtime.Object
	metav1.Object
}]() Column[P] {
	return Column[P]{
		Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		Value: func(obj P) any { return ageOf(obj, time.Now()) },
	}
}
