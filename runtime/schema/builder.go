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

// RefPrefix begins every reference between definitions, as in OpenAPI v3. [V2] makes the other form.
const RefPrefix = "#/components/schemas/"

// Options says whose schemas a Builder makes.
type Options struct {
	// GroupVersion names the Go structs that have no name of their own.
	GroupVersion schema.GroupVersion
	// Docs are the doc comments of types whose kind brings none. nil: none.
	Docs *Docs
}

// Kind is a kind to describe, with its list.
type Kind struct {
	// GVK is the kind; it may be of another group and version than the Builder's.
	GVK schema.GroupVersionKind
	// Type is the Go struct of an object; of a nil or any other type, unstructured.Unstructured included, it is only known
	// that it is an object. ListType is that of a list; nil describes a list as a List[T] is.
	Type, ListType reflect.Type
	// Object describes the objects of a kind without a Go type; nil: they may have any fields. The fields up to Docs
	// are for kinds that have one.
	Object Describer
	// ListKind is the kind of its lists; "" is its name and List. Plural is its resource; "" is its name in lower case.
	ListKind, Plural string
	// SelectableFields are the paths that field selectors may name besides those of all kinds: "spec.color".
	SelectableFields []string
	// Docs are the doc comments of the source that declares Type. nil: those of Options.
	Docs *Docs
	// Description is used when neither Docs nor a SwaggerDoc method describes the kind.
	Description string
	// WithoutList leaves the list out, for kinds that are never listed.
	WithoutList bool
}

// Builder collects Go types and makes their definitions. It is not for concurrent use.
type Builder struct {
	opts  Options
	kinds []Kind
	types []reflect.Type
	names *names
	named map[schema.GroupVersionKind]string // of kinds

	definitions map[string]spec.Schema // nil until built
}

// NewBuilder returns a Builder without types.
func NewBuilder(o Options) *Builder {
	return &Builder{opts: o, names: newNames(o.GroupVersion), named: map[schema.GroupVersionKind]string{}}
}

// AddKind adds a kind and all it refers to, and returns the name of its definition. Adding a kind or its Go type
// again changes nothing. Kinds should be added before types that may want the same name.
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

// ListName returns the name of the list definition of a kind that AddKind named name.
func (b *Builder) ListName(name string) string {
	for _, k := range b.kinds {
		if b.named[k.GVK] == name {
			return k.listName(name)
		}
	}
	return Kind{}.listName(name)
}

// AddType adds a struct type that is not a kind, and all it refers to, and returns the name of its definition. A
// type that is not a struct has no definition, and "" is returned.
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

// Definitions returns all definitions by name. The map is the caller's, the schemas in it are shared and must not
// be changed.
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

// DefinitionsV2 returns all definitions by name in the form of OpenAPI v2, as [V2] does. Of a kind that has a Describer more is
// left out, as kube-apiserver does with custom resources: clients could get it wrong. The map is the caller's, the schemas in
// it are shared and must not be changed.
func (b *Builder) DefinitionsV2() map[string]spec.Schema {
	return V2(b.build((*reflector).addKindV2))
}

// MergeDefinitions returns the definition of each kind by which its objects are merged, and all it refers to: those of
// Definitions, but of a kind that has a Describer what its MergeSchema says, and no lists. All of it is the caller's.
func (b *Builder) MergeDefinitions() map[string]*spec.Schema {
	out := map[string]*spec.Schema{}
	for name, s := range b.build((*reflector).addKindToMerge) {
		out[name] = &s
	}
	return out
}

// build makes all definitions, those of a kind by the function.
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

// markMetaKinds says of the types every group has which kinds they are in this group.
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

// structOf returns the struct type that t is or points to, nil when it is none.
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
	r.out[name] = spec.Schema{} // for types that refer to the kind
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

// addKindV2 is addKind for definitions of which [V2] makes those of OpenAPI v2.
func (r *reflector) addKindV2(k Kind, name string) {
	if k.Object == nil {
		r.addKind(k, name)
		return
	}
	s := k.Object.OpenAPI()
	if s == nil || s.Extensions[extensionPreserveUnknown] == true { // clients would take what is named for all there is
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

// addKindToMerge is addKind for definitions by which objects are merged. They need no lists.
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
