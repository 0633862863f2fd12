package schema

import (
	"reflect"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// RefPrefix begins every reference between definitions, as in OpenAPI v3. [V2] replaces it by the prefix of OpenAPI v2.
const RefPrefix = "#/components/schemas/"

// Options are the options of a Builder.
type Options struct {
	// GroupVersion is the prefix of the names of Go structs that have no definition name of their own.
	GroupVersion schema.GroupVersion
	// Docs are the doc comments for types whose Kind has no Docs. nil: none.
	Docs *Docs
}

// Kind describes a kind, and its list, to a Builder.
type Kind struct {
	// GVK is the kind; it may be of another group and version than the Builder.
	GVK schema.GroupVersionKind
	// Type is the Go struct of an object. For nil or any type that is not a struct of an API, such as unstructured.Unstructured,
	// the definition has only what all objects have. ListType is the Go struct of a list; nil means that a list has the form of
	// runtime.List.
	Type, ListType reflect.Type
	// Object describes the objects of a kind without a Go type; nil allows any fields. ListKind, Plural and SelectableFields have
	// an effect only if Object is set.
	Object Describer
	// ListKind is the kind of the list; "" means the name of the kind with List appended. Plural is the resource; "" means the
	// name of the kind in lower case.
	ListKind, Plural string
	// SelectableFields are the paths, such as "spec.color", that field selectors may use besides those of all kinds.
	SelectableFields []string
	// Docs are the doc comments of the source that declares Type. nil: those of Options.
	Docs *Docs
	// Description is used if neither Docs nor a SwaggerDoc method describes the kind.
	Description string
	// WithoutList omits the definition of the list, for kinds that are never listed.
	WithoutList bool
}

// Builder collects Go types and makes their definitions. It must not be used concurrently.
//
// # Names
//
// The name of a kind's definition is its reversed group, its version and its name: com.example.v1.Widget,
// com.example.v1.WidgetList. A Go struct that a kind uses is named in the same way: com.example.v1.WidgetSpec. Types of
// Kubernetes keep the name that they have in every API (io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta). Anonymous structs have
// no definition of their own. Names are the same in every run: they depend on the kinds and types that were added. They depend on
// the order of adding only if two Go types would get the same name; then the name of the second type also contains its package.
//
// # From Go to schema
//
//   - Fields follow encoding/json: embedding, tags, `-`, ",string". A field is required unless it is a pointer or has omitempty
//     or omitzero; the markers +required and +optional override this. References to other definitions have `default: {}`, and
//     required fields of plain types have their zero value as default, as in the documents of kube-apiserver.
//   - int32 and int64 are integers of that format; int and uint64 are int64 too. []byte is a string of format byte, and time.Time
//     a date-time. A type with the methods OpenAPISchemaType and OpenAPISchemaFormat defines its own type and format. A type with
//     only a MarshalText method is a string. A type with only a MarshalJSON method, json.RawMessage and interfaces may hold any
//     value.
//   - The struct tags patchStrategy and patchMergeKey become the extensions of those names. The struct tags listType, listMapKey
//     (several keys are separated by commas), mapType and structType mean the same as the markers of these names, and override
//     them. [Check] returns an error for those that are not valid. See
//     https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy.
//   - The constraints that package constraint reads from struct tags (minimum, pattern, default, ...) become constraints of the
//     schema. They are also listed in a last paragraph of the description, because kubectl explain shows only required and enum.
type Builder struct {
	opts  Options
	kinds []Kind
	types []reflect.Type
	names *names
	named map[schema.GroupVersionKind]string // by kind

	definitions map[string]spec.Schema // nil until built
}

// NewBuilder returns a Builder without types.
func NewBuilder(o Options) *Builder {
	return &Builder{opts: o, names: newNames(o.GroupVersion), named: map[schema.GroupVersionKind]string{}}
}

// AddKind adds a kind and all types that it refers to, and returns the name of its definition. Adding a kind or its Go type again
// changes nothing. Add kinds before types that might get the same name.
func (b *Builder) AddKind(k Kind) string {
	if k.Type, k.ListType = structOf(k.Type), structOf(k.ListType); k.Type == reflect.TypeFor[unstructured.Unstructured]() {
		k.Type, k.ListType = nil, nil
	}
	if k.Docs == nil {
		k.Docs = b.opts.Docs
	}
	if name, ok := b.named[k.GVK]; ok {
		return name
	}
	if k.Type != nil {
		k.Object = nil
	}
	name, ok := b.names.known(k.Type)
	if !ok {
		b.definitions = nil
		name = b.names.addKind(k)
		b.kinds = append(b.kinds, k)
	}
	b.named[k.GVK] = name
	return name
}

// ListName returns the name of the list's definition for a kind whose definition has the given name.
func (b *Builder) ListName(name string) string {
	for _, k := range b.kinds {
		if b.named[k.GVK] == name {
			return k.listName(name)
		}
	}
	return Kind{}.listName(name)
}

// AddType adds a struct type that is not a kind, and all types that it refers to, and returns the name of its definition. For a
// type that is not a struct it returns "" and adds nothing.
func (b *Builder) AddType(t reflect.Type) string {
	if t = structOf(t); t == nil {
		return ""
	}
	b.definitions = nil
	if !slices.Contains(b.types, t) {
		b.types = append(b.types, t)
	}
	return b.names.of(t)
}

// Definitions returns all definitions by name. The map is the caller's own; the schemas in it are shared and must not be changed.
func (b *Builder) Definitions() map[string]spec.Schema {
	if b.definitions == nil {
		b.definitions = b.build((*reflector).addKind)
	}
	out := make(map[string]spec.Schema, len(b.definitions))
	for name, s := range b.definitions {
		out[name] = s
	}
	return out
}

// DefinitionsV2 returns all definitions by name in the form of OpenAPI v2, as [V2] does. For a kind that has a Describer more is
// left out, as kube-apiserver does for custom resources, because clients of OpenAPI v2 could misread it. The map is the caller's
// own; the schemas in it are shared and must not be changed.
func (b *Builder) DefinitionsV2() map[string]spec.Schema {
	return V2(b.build((*reflector).addKindV2))
}

// MergeDefinitions returns, for each kind, the definition by which server-side apply merges its objects, and the definitions that
// it refers to. They are those of Definitions, except that a kind with a Describer has its MergeSchema, and that there are no
// lists. The map and the schemas are the caller's own.
func (b *Builder) MergeDefinitions() map[string]*spec.Schema {
	out := map[string]*spec.Schema{}
	for name, s := range b.build((*reflector).addKindToMerge) {
		out[name] = &s
	}
	return out
}

// build makes all definitions; addKind makes those of a kind.
func (b *Builder) build(addKind func(r *reflector, k Kind, name string)) map[string]spec.Schema {
	r := newReflector(b.names)
	for _, k := range b.kinds {
		addKind(r, k, b.named[k.GVK])
	}
	for _, t := range b.types {
		r.docs = b.opts.Docs
		r.define(t)
	}
	b.markMetaKinds(r.out)
	return r.out
}

// markMetaKinds adds to the types that are in every group the kinds that they are in this group.
func (b *Builder) markMetaKinds(out map[string]spec.Schema) {
	core := schema.GroupVersion{Version: "v1"}
	for _, t := range []reflect.Type{
		reflect.TypeFor[metav1.DeleteOptions](), reflect.TypeFor[metav1.CreateOptions](), reflect.TypeFor[metav1.UpdateOptions](),
		reflect.TypeFor[metav1.PatchOptions](), reflect.TypeFor[metav1.GetOptions](), reflect.TypeFor[metav1.ListOptions](),
		reflect.TypeFor[metav1.WatchEvent](),
	} {
		setKinds(out, b.names.of(t), core.WithKind(t.Name()), b.opts.GroupVersion.WithKind(t.Name()))
	}
	for _, t := range []reflect.Type{
		reflect.TypeFor[metav1.Status](), reflect.TypeFor[metav1.APIVersions](), reflect.TypeFor[metav1.APIGroup](),
		reflect.TypeFor[metav1.APIGroupList](), reflect.TypeFor[metav1.APIResourceList](),
	} {
		setKinds(out, b.names.of(t), core.WithKind(t.Name()))
	}
}

// structOf returns the struct type that t is or points to, or nil.
func structOf(t reflect.Type) reflect.Type {
	t = jsonfield.Dereference(t)
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// addKind adds the definitions of a kind and its list.
func (r *reflector) addKind(k Kind, name string) {
	if k.Object != nil {
		r.addDescribed(k, name)
		return
	}
	r.docs = k.Docs
	r.out[name] = spec.Schema{} // so that types can refer to the kind
	s := r.plainObject(k)
	if k.Type != nil {
		s = r.object(k.Type, r.comment(k.Type))
	}
	s.Description = firstOf(r.kindText(k), k.Description, s.Description)
	complete(s, map[string]string{
		"metadata": "Standard object's metadata. " + conventions + "#metadata",
		"spec":     "Specification of the desired behavior of the " + k.GVK.Kind + ". " + conventions + "#spec-and-status",
		"status":   "Most recently observed status of the " + k.GVK.Kind + ". Populated by the system. Read-only. " + conventions + "#spec-and-status",
	})
	r.out[name] = s
	setKinds(r.out, name, k.GVK)
	if !k.WithoutList {
		r.addList(k, name)
	}
}

func (r *reflector) addList(k Kind, name string) {
	list := k.listName(name)
	kind := k.GVK
	kind.Kind += "List"
	s := spec.Schema{}
	if k.ListType != nil {
		s = r.object(k.ListType, r.comment(k.ListType))
	}
	if items, ok := s.Properties["items"]; !ok || items.Items == nil {
		s = r.plainList(name)
	}
	s.Description = firstOf(s.Description, kind.Kind+" is a list of "+k.GVK.Kind)
	complete(s, map[string]string{
		"metadata": "Standard list metadata. " + conventions + "#types-kinds",
		"items":    "List of " + strings.ToLower(k.GVK.Kind) + " objects. " + conventions,
	})
	r.out[list] = s
	setKinds(r.out, list, kind)
}

// addKindV2 is addKind for definitions that [V2] converts to OpenAPI v2.
func (r *reflector) addKindV2(k Kind, name string) {
	if k.Object == nil {
		r.addKind(k, name)
		return
	}
	s := k.Object.OpenAPI()
	if s == nil || s.Extensions[extensionPreserveUnknown] == true { // clients would reject fields that are not named
		plain := typed("object", "")
		s = &plain
	} else {
		structureV2(s)
		r.addObjectMeta(s)
		r.addEmbedded(s, true)
	}
	r.setDescribed(name, *s, k)
	r.addDescribedList(k, name)
}

// addKindToMerge is addKind for the definitions by which objects are merged. They need no lists.
func (r *reflector) addKindToMerge(k Kind, name string) {
	if k.Object != nil {
		if s := k.Object.MergeSchema(r.metaSchema()); s != nil {
			r.out[name] = *s
			return
		}
	}
	k.Object, k.WithoutList = nil, true
	r.addKind(k, name)
}
