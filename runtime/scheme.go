package runtime

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/runtime/constraint"
	"github.com/keelson-dev/keelson/runtime/internal/jsonread"
	"github.com/keelson-dev/keelson/runtime/internal/weight"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Scheme knows kinds. Make one with [NewScheme]; the zero Scheme is not usable. All methods may be called
// concurrently, registration included: a reader sees a kind whole or not at all.
//
// A Scheme implements apimachinery's ObjectTyper, ObjectCreater, ObjectDefaulter and ObjectConvertor, so
// helpers written against those accept it.
type Scheme struct {
	mu     sync.RWMutex // guards all below; a *Kind is immutable once in byGVK
	byGVK  map[schema.GroupVersionKind]*Kind
	byType map[reflect.Type]typeEntry                   // pointer-free struct types, kinds and lists
	hubs   map[schema.GroupKind]schema.GroupVersionKind // of another group where a conversion joins the kind to one
	lists  map[schema.GroupVersionKind]*Kind            // kinds without a Go type, by the kind of their list

	toHub   map[schema.GroupVersionKind]convertFunc // by spoke
	fromHub map[schema.GroupVersionKind]convertFunc // by spoke

	constraints constraint.Compiler // guards itself
	reader      jsonread.Compiler   // guards itself
	weights     weight.Types        // guards itself
}

// schemeName is what apimachinery's errors call a Scheme.
const schemeName = "keelson"

type convertFunc func(in, out Object) error

type typeEntry struct {
	gvk  schema.GroupVersionKind // of the kind or of the list
	kind *Kind
}

// Kind is what a Scheme knows of one registered kind in one version. It is immutable.
type Kind struct {
	// GVK is the kind's group, version and name.
	GVK schema.GroupVersionKind
	// ListGVK is the kind of its list: the name with "List" appended, unless KindOptions.ListKind said otherwise.
	ListGVK schema.GroupVersionKind
	// Type is the Go struct type (not the pointer) of an object, ListType that of a list; nil for an imported kind
	// that brings no list type. Those of a kind without a Go type are unstructured.Unstructured and UnstructuredList.
	Type, ListType reflect.Type
	// Fields are the selectable fields beyond metadata.name and metadata.namespace, as dotted JSON paths of this version.
	// The slice is shared and must not be changed.
	Fields []string
	// Renamed says what the hub calls those of Fields that it has at another path. It is shared and must not be changed.
	Renamed map[string]string
	// Constraints are the rules in the struct tags of Type, nil when it has none. The registry enforces them; those
	// defaults are set by SetDefaults.
	Constraints *constraint.Rules

	// Schema is that of a kind without a Go type, nil when it has none.
	Schema ObjectSchema

	setDefaults func(Object)   // the program's own; nil: none
	convert     ConvertUntyped // of a kind without a Go type; without both versions differ in apiVersion alone
	convertAll  ConvertAllUntyped
	from        map[string][]string // where those of Fields are that are no paths
	isHub       bool                // it was registered as one, not found to be one
	listMade    bool                // ListType is List[T], not a type of the program's
	untyped     bool                // it has no Go type
	reader      *jsonread.Compiler  // the Scheme's
	weights     *weight.Types       // the Scheme's
}

// New returns a new, empty object of the kind: without kind and apiVersion set, or of a kind without a Go type with
// nothing else, as the Scheme knows such objects by nothing else.
func (k *Kind) New() Object {
	if k.untyped {
		return newUntyped(k.GVK)
	}
	return reflect.New(k.Type).Interface().(Object)
}

// NewList returns a new, empty list of the kind, with kind and apiVersion set or not as by New; nil for an imported kind
// that brings no list type.
func (k *Kind) NewList() Object {
	switch {
	case k.untyped:
		return newUntypedList(k.ListGVK)
	case k.ListType == nil:
		return nil
	}
	return reflect.New(k.ListType).Interface().(Object)
}

// SetDefaults sets the kind's defaults in place: those of its struct tags or its Schema, then the program's own. obj must be
// of the kind's Go type. An untyped one has values of decoded JSON, and is normalized after the program's own defaults.
func (k *Kind) SetDefaults(obj Object) { _ = k.SetDefaultsWithin(obj, nil) }

// SetDefaultsWithin is SetDefaults that tells grows, which may be nil, about how many bytes of defaults a Schema sets: see
// [ObjectSchema]. An error of grows ends it, and is returned; there are no others.
func (k *Kind) SetDefaultsWithin(obj Object, grows func(bytes int) error) error {
	k.Constraints.SetDefaults(obj)
	if u, ok := obj.(*unstructured.Unstructured); ok && k.Schema != nil && u != nil && u.Object != nil {
		if err := k.Schema.SetDefaults(u.Object, grows); err != nil {
			return err
		}
	}
	if k.setDefaults == nil {
		return nil
	}
	k.setDefaults(obj)
	if k.untyped {
		_ = Normalize(obj) // what it cannot, the registry refuses to store
	}
	return nil
}

// HasDefaults reports whether SetDefaults may do anything.
func (k *Kind) HasDefaults() bool {
	return k.setDefaults != nil || k.Schema != nil || k.Constraints.HasDefaults()
}

// KindOptions refines a registration. The zero value registers a kind with no defaults and no selectable
// fields beyond its name and namespace.
type KindOptions[T Object] struct {
	// Default sets defaults in place, after those of struct tags (see package constraint). It runs after every
	// decoding, concurrently for different objects, must be idempotent, and must not keep obj.
	Default func(obj T)
	// SelectableFields are dotted JSON paths ("spec.color") which field selectors may name besides
	// metadata.name and metadata.namespace. Each must lead to a string, boolean or integer field. In a kind without a Go
	// type any path will do: what an object has there counts as the text of a string, boolean or number, and everything
	// else as "".
	SelectableFields []string
	// RenamedFields are selectable fields which this version has at another path than the hub: the key is the path
	// here, the value that of one of the hub's SelectableFields, as in {"spec.colour": "spec.color"}. Both must hold the
	// same text for one object. The hub has none.
	RenamedFields map[string]string
	// SelectableFrom are selectable fields whose name is no path of a value: by name, the paths of strings, of which the
	// first that is not empty is what selectors compare, as in {"source": {"source.component", "reportingComponent"}} of v1
	// Event. Only the hub has them.
	SelectableFrom map[string][]string
	// ListKind is the name of the list of a kind without a Go type; "" is that of the kind with "List" appended.
	ListKind string
	// Schema says what the objects of a kind without a Go type are like; nil: they may have any fields. Other kinds have none.
	Schema ObjectSchema
	// Convert makes objects of one version those of another, for a kind without a Go type whose versions differ in more than
	// apiVersion: all its versions have the same function. It changes neither name, namespace nor uid, and of metadata only
	// what it does to labels and annotations counts. An error, or a panic, makes the one conversion fail.
	Convert ConvertUntyped
	// ConvertAll is for many objects at once what Convert is for one. A kind has one of the two at most.
	ConvertAll ConvertAllUntyped
	// Hub makes this version the hub of its group and kind, whatever was registered before. Without it the
	// first version registered is the hub. It comes before the conversions of the kind's versions. No version of a kind
	// that has its hub in another group is one: see [AddConversion].
	Hub bool
}

// NewScheme returns a Scheme without kinds. It knows only the types that every API has, which are no kinds but can
// be made and named: Status and the discovery types in v1, Table and PartialObjectMetadata in meta.k8s.io/v1, and
// the request options and WatchEvent in those two and in every version that has kinds.
func NewScheme() *Scheme {
	return &Scheme{
		byGVK:   map[schema.GroupVersionKind]*Kind{},
		byType:  map[reflect.Type]typeEntry{},
		hubs:    map[schema.GroupKind]schema.GroupVersionKind{},
		lists:   map[schema.GroupVersionKind]*Kind{},
		toHub:   map[schema.GroupVersionKind]convertFunc{},
		fromHub: map[schema.GroupVersionKind]convertFunc{},
	}
}

// KindOf returns the kind that obj, an object or a list, is of, or nil. One without a Go type is of the kind that it says
// it is, if that is registered without one.
func (s *Scheme) KindOf(obj Object) *Kind {
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		if obj != nil {
			return s.untypedKind(obj.GroupVersionKind())
		}
	case *unstructured.UnstructuredList:
		if obj != nil {
			s.mu.RLock()
			defer s.mu.RUnlock()
			return s.lists[obj.GroupVersionKind()]
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byType[structType(obj)].kind
}

// GroupKinds returns what kinds are registered, in whatever versions, by group and name. The slice is the caller's own.
func (s *Scheme) GroupKinds() []schema.GroupKind {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(s.hubs), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
}

// Versions returns the kinds registered for a group and kind, by version in the order of Kubernetes (v2, v1, v1beta1,
// v1alpha1), and those of all groups that share its hub: first the hub's group, then the others by name. The slice is the
// caller's own.
func (s *Scheme) Versions(gk schema.GroupKind) []*Kind {
	s.mu.RLock()
	defer s.mu.RUnlock()
	hub, ok := s.hubs[gk]
	if !ok {
		return nil
	}
	var kinds []*Kind
	for gvk, k := range s.byGVK {
		if s.hubs[gvk.GroupKind()] == hub {
			kinds = append(kinds, k)
		}
	}
	other := func(k *Kind) int {
		if k.GVK.Group == hub.Group {
			return 0
		}
		return 1
	}
	slices.SortFunc(kinds, func(a, b *Kind) int {
		return cmp.Or(cmp.Compare(other(a), other(b)), cmp.Compare(a.GVK.Group, b.GVK.Group),
			version.CompareKubeAwareVersionStrings(b.GVK.Version, a.GVK.Version))
	})
	return kinds
}

// New implements apimachinery's ObjectCreater, for kinds, their lists and the types every API has.
func (s *Scheme) New(gvk schema.GroupVersionKind) (Object, error) {
	if k := s.Lookup(gvk); k != nil {
		return k.New(), nil
	}
	s.mu.RLock()
	list := s.lists[gvk]
	s.mu.RUnlock()
	if list != nil {
		return list.NewList(), nil
	}
	if name, ok := strings.CutSuffix(gvk.Kind, "List"); ok {
		if k := s.Lookup(gvk.GroupVersion().WithKind(name)); k != nil && k.ListType != nil && !k.untyped {
			return k.NewList(), nil
		}
	}
	if obj := newMeta(gvk); obj != nil {
		return obj, nil
	}
	if obj := newOptions(gvk.Kind); obj != nil && s.hasVersion(gvk.GroupVersion()) {
		return obj, nil
	}
	return nil, apiruntime.NewNotRegisteredErrForKind(schemeName, gvk)
}

// ObjectKinds implements apimachinery's ObjectTyper.
func (s *Scheme) ObjectKinds(obj Object) ([]schema.GroupVersionKind, bool, error) {
	if u, ok := obj.(apiruntime.Unstructured); ok {
		gvk := u.GetObjectKind().GroupVersionKind()
		if gvk.Kind == "" {
			return nil, false, apiruntime.NewMissingKindErr("unstructured object has no kind")
		}
		return []schema.GroupVersionKind{gvk}, false, nil
	}
	s.mu.RLock()
	e, ok := s.byType[structType(obj)]
	s.mu.RUnlock()
	if ok {
		return []schema.GroupVersionKind{e.gvk}, false, nil
	}
	if gvk, unversioned := metaKind(obj); gvk.Kind != "" {
		return []schema.GroupVersionKind{gvk}, unversioned, nil
	}
	return nil, false, apiruntime.NewNotRegisteredErrForType(schemeName, reflect.TypeOf(obj))
}

// Recognizes implements apimachinery's ObjectTyper.
func (s *Scheme) Recognizes(gvk schema.GroupVersionKind) bool {
	_, err := s.New(gvk)
	return err == nil
}

// Default implements apimachinery's ObjectDefaulter; objects of unregistered types are left alone.
func (s *Scheme) Default(obj Object) {
	if k := s.KindOf(obj); k != nil && structType(obj) == k.Type {
		k.SetDefaults(obj)
	}
}

func structType(obj Object) reflect.Type {
	t := reflect.TypeOf(obj)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
