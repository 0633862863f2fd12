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

// Scheme holds the registered kinds. Use [NewScheme] to make one; the zero Scheme is not usable. All methods may be called
// concurrently, also while kinds are registered: another call finds the whole kind, or nothing of it.
//
// A Scheme implements apimachinery's ObjectTyper, ObjectCreater, ObjectDefaulter and ObjectConvertor, so
// helpers written against those accept it.
type Scheme struct {
	mu     sync.RWMutex // guards all fields but the last three; a *Kind is immutable once in byGVK
	byGVK  map[schema.GroupVersionKind]*Kind
	byType map[reflect.Type]typeEntry                   // struct types (not pointers) of kinds and of lists
	hubs   map[schema.GroupKind]schema.GroupVersionKind // the hub is of another group if a conversion joins the kind to that group
	lists  map[schema.GroupVersionKind]*Kind            // kinds without a Go type, by the kind of their list

	toHub   map[schema.GroupVersionKind]convertFunc // by the kind of the spoke
	fromHub map[schema.GroupVersionKind]convertFunc // by the kind of the spoke

	constraints constraint.Compiler // has its own lock
	reader      jsonread.Compiler   // has its own lock
	weights     weight.Types        // has its own lock
}

// schemeName is the name of a Scheme in apimachinery's errors.
const schemeName = "keelson"

type convertFunc func(in, out Object) error

type typeEntry struct {
	gvk  schema.GroupVersionKind // of the kind or of the list
	kind *Kind
}

// Kind describes one registered kind in one version. It is immutable.
type Kind struct {
	// GVK is the kind's group, version and name.
	GVK schema.GroupVersionKind
	// ListGVK is the kind of its list: the name with "List" appended, unless [KindOptions].ListKind is set.
	ListGVK schema.GroupVersionKind
	// Type is the Go struct type (not the pointer) of an object, and ListType that of a list. ListType is nil for an imported
	// kind that has no list type. A kind without a Go type has unstructured.Unstructured and UnstructuredList.
	Type, ListType reflect.Type
	// Fields are the selectable fields beyond metadata.name and metadata.namespace, as dotted JSON paths of this version.
	// The slice is shared and must not be changed.
	Fields []string
	// Renamed maps a field of Fields to the hub's path for it, if the paths differ. It is shared and must not be changed.
	Renamed map[string]string
	// Constraints are the rules in the struct tags of Type, or nil if it has none. The registry enforces the rules, and
	// SetDefaults sets the defaults among them.
	Constraints *constraint.Rules

	// Schema is the schema of a kind without a Go type, or nil if it has none.
	Schema ObjectSchema

	setDefaults func(Object)   // the program's own function; nil if there is none
	convert     ConvertUntyped // of a kind without a Go type; if this and convertAll are nil, versions differ in apiVersion alone
	convertAll  ConvertAllUntyped
	from        map[string][]string // the paths of those of Fields that are not paths themselves: see KindOptions.SelectableFrom
	isHub       bool                // it was registered with KindOptions.Hub
	listMade    bool                // ListType is List[T], not a type of the program
	untyped     bool                // it has no Go type
	reader      *jsonread.Compiler  // of the Scheme
	weights     *weight.Types       // of the Scheme
}

// New returns a new, empty object of the kind. kind and apiVersion are not set, unless the kind has no Go type: the Scheme
// identifies such an object by them.
func (k *Kind) New() Object {
	if k.untyped {
		return newUntyped(k.GVK)
	}
	return reflect.New(k.Type).Interface().(Object)
}

// NewList returns a new, empty list of the kind, or nil for an imported kind that has no list type. kind and apiVersion are set
// as in New.
func (k *Kind) NewList() Object {
	switch {
	case k.untyped:
		return newUntypedList(k.ListGVK)
	case k.ListType == nil:
		return nil
	}
	return reflect.New(k.ListType).Interface().(Object)
}

// SetDefaults sets the kind's defaults in place: first the defaults of its struct tags or of its Schema, then those of
// [KindOptions].Default. obj must have the kind's Go type. An untyped obj must have the values of decoded JSON; SetDefaults calls
// [Normalize] after [KindOptions].Default.
func (k *Kind) SetDefaults(obj Object) { _ = k.SetDefaultsWithin(obj, nil) }

// SetDefaultsWithin is SetDefaults with a function that is called with the number of bytes of defaults that a Schema sets: see
// [ObjectSchema]. grows may be nil. If grows returns an error, SetDefaultsWithin stops and returns it; it returns no other
// errors.
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
		_ = Normalize(obj) // the registry refuses to store an object that cannot be normalized
	}
	return nil
}

// HasDefaults reports whether SetDefaults may change an object.
func (k *Kind) HasDefaults() bool {
	return k.setDefaults != nil || k.Schema != nil || k.Constraints.HasDefaults()
}

// KindOptions are the options of [Register]. The zero value registers a kind with no defaults and no selectable fields except its
// name and namespace.
type KindOptions[T Object] struct {
	// Default sets defaults in place, after those of struct tags (see package constraint) or of Schema. It runs after every
	// decoding, concurrently for different objects. It must be idempotent and must not keep obj.
	Default func(obj T)
	// SelectableFields are dotted JSON paths ("spec.color") that field selectors may use besides metadata.name and
	// metadata.namespace. Each path must lead to a string, boolean or integer field. A kind without a Go type may have any path:
	// the value is the text of a string, boolean or number, and "" for anything else.
	SelectableFields []string
	// RenamedFields are selectable fields that have another path in this version than in the hub. The key is the path in this
	// version, and the value is one of the hub's SelectableFields, as in {"spec.colour": "spec.color"}. Both fields must hold the
	// same text for one object. The hub must not have RenamedFields.
	RenamedFields map[string]string
	// SelectableFrom are selectable fields whose name is not a path. The key is the name, and the value is a list of paths of
	// strings: selectors compare the first string that is not empty. An example is {"source": {"source.component",
	// "reportingComponent"}} of v1 Event. Only the hub may have SelectableFrom.
	SelectableFrom map[string][]string
	// ListKind is the name of the list kind of a kind without a Go type. "" means the name of the kind with "List" appended.
	ListKind string
	// Schema is the schema of a kind without a Go type; nil allows any fields. Other kinds must not have a Schema.
	Schema ObjectSchema
	// Convert converts an object from one version to another, for a kind without a Go type whose versions differ in more than
	// apiVersion. All versions of the kind have the same function. Convert must not change name, namespace or uid, and its
	// changes to other metadata are ignored, except labels and annotations. An error or a panic makes this one conversion fail.
	Convert ConvertUntyped
	// ConvertAll is like Convert, for many objects at once. A kind has at most one of Convert and ConvertAll.
	ConvertAll ConvertAllUntyped
	// Hub makes this version the hub of its group and kind, even if another version was registered before. Without it, the first
	// version registered is the hub. The hub must be registered before conversions to another hub are added. No version may have
	// Hub set if the kind has its hub in another group: see [AddConversion].
	Hub bool
}

// NewScheme returns a Scheme without kinds. It has only the types that are part of every API: Status and the discovery types in
// v1, Table and PartialObjectMetadata in meta.k8s.io/v1, and the request options and WatchEvent in those two group versions and
// in every group version that has kinds. These types are not kinds, but New and ObjectKinds accept them.
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

// KindOf returns the kind of obj, which may be an object or a list, or nil if it is not registered. An untyped object or list has
// the kind and apiVersion that are set in it, if that kind is registered without a Go type.
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

// GroupKinds returns the registered kinds without their versions, sorted by group and name. The slice is the caller's own.
func (s *Scheme) GroupKinds() []schema.GroupKind {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(s.hubs), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
}

// Versions returns all registered versions of a kind, in the order of Kubernetes (v2, v1, v1beta1, v1alpha1). If the kind is in
// several groups that share a hub, the versions of all groups are returned: first those of the hub's group, then the other groups
// by name. The slice is the caller's own.
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

// New implements apimachinery's ObjectCreater, for kinds, their lists and the types that every API has.
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

// Default implements apimachinery's ObjectDefaulter. It does not change objects of unregistered types.
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
