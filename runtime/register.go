package runtime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Register adds the kind gvk, whose objects have the Go type T, and makes a list type for it. Register returns an error, with
// advice, for:
//
//   - an empty version or kind
//   - a kind that is already registered
//   - a Go type that is already registered for another kind or version: clients could not tell the two kinds apart. Declare a
//     second struct, or for a Resource a second spec type: `type WidgetSpecV2 WidgetSpec`
//   - a type without TypeMeta or ObjectMeta, or a type whose JSON does not begin with kind and apiVersion or has no metadata,
//     because a tag is wrong or missing
//   - a type whose DeepCopyObject method returns another type, because the type embeds a Resource and inherits its method
//   - a selectable field that the type does not have
//   - struct tags that are not valid: see package constraint
//
// Kinds without a Go type are registered with T *unstructured.Unstructured. Any number of kinds and versions may be registered
// this way:
//
//	err := runtime.Register[*unstructured.Unstructured](scheme, gv.WithKind("Gadget"), runtime.KindOptions[*unstructured.Unstructured]{})
//
// These kinds share one Go type, so a Scheme identifies such an object by its kind and apiVersion. [Kind.New] and [Kind.NewList]
// set both. All fields of an object are kept, and metadata has the usual fields, as in a custom resource whose schema is `type:
// object` with x-kubernetes-preserve-unknown-fields. All versions of such a kind have the same fields: a conversion changes
// apiVersion alone, and needs no function. [KindOptions].Schema and [KindOptions].Convert are for kinds that need more.
func Register[P Pointer[T], T any](s *Scheme, gvk schema.GroupVersionKind, opts KindOptions[P]) error {
	k := &Kind{
		GVK: gvk, Type: reflect.TypeFor[T](), ListType: reflect.TypeFor[List[T]](), listMade: true,
		Fields:  selectable(opts.SelectableFields, opts.RenamedFields, opts.SelectableFrom),
		Renamed: maps.Clone(opts.RenamedFields), from: maps.Clone(opts.SelectableFrom),
		Schema: opts.Schema, convert: opts.Convert, convertAll: opts.ConvertAll, ListGVK: schema.GroupVersionKind{Kind: opts.ListKind},
	}
	if k.Type == reflect.TypeFor[unstructured.Unstructured]() {
		k.untyped, k.listMade, k.ListType = true, false, reflect.TypeFor[unstructured.UnstructuredList]()
	}
	if opts.Default != nil {
		k.setDefaults = func(o Object) { opts.Default(o.(P)) }
	}
	return s.add(k, opts.Hub)
}

func (s *Scheme) add(k *Kind, hub bool) error {
	k.isHub, k.reader, k.weights = hub, &s.reader, &s.weights
	if k.ListGVK.Kind == "" {
		k.ListGVK.Kind = k.GVK.Kind + "List"
	}
	k.ListGVK = k.GVK.GroupVersion().WithKind(k.ListGVK.Kind)
	err := guard(func() error { return s.checkKind(k) })
	if err != nil {
		return fmt.Errorf("register %s: %w", k.GVK, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkFree(k); err != nil {
		return fmt.Errorf("register %s: %w", k.GVK, err)
	}
	group := k.GVK.GroupKind()
	old, exists := s.hubs[group]
	switch {
	case !exists || !hub:
	case old.Group != k.GVK.Group:
		return fmt.Errorf("register %s: the kind is joined to the hub %s; remove Hub, and convert this version to that", k.GVK, old)
	case s.hasSpokes(old):
		return fmt.Errorf("register %s: conversions to the hub %s exist already; register the hub before them", k.GVK, old)
	}
	s.byGVK[k.GVK] = k
	if k.untyped {
		s.lists[k.ListGVK] = k
	} else {
		s.byType[k.Type] = typeEntry{k.GVK, k}
		if k.ListType != nil {
			s.byType[k.ListType] = typeEntry{k.ListGVK, k}
		}
	}
	if !exists || hub {
		s.hubs[group] = k.GVK
	}
	return nil
}

// checkFree returns an error if the kind, its name or its Go type is already registered. The caller holds mu.
func (s *Scheme) checkFree(k *Kind) error {
	if _, ok := s.byGVK[k.GVK]; ok {
		return fmt.Errorf("the kind is registered already")
	}
	for _, other := range s.byGVK {
		if other.ListGVK == k.GVK || k.ListGVK == other.GVK || other.ListGVK == k.ListGVK {
			return fmt.Errorf("its name, or that of its list, is taken by %s and its list; choose another name", other.GVK)
		}
		if other.GVK.GroupKind() == k.GVK.GroupKind() && other.untyped != k.untyped {
			return fmt.Errorf("of it and %s one has a Go type and the other has none, and nothing converts between the two; register all versions of a kind with Go types, or all without", other.GVK)
		}
	}
	if k.untyped {
		return nil
	}
	other, ok := s.byType[k.Type]
	if !ok && k.ListType != nil {
		other, ok = s.byType[k.ListType]
	}
	if ok {
		return fmt.Errorf("type %v stands for %s already, and clients could not tell the two apart; give every kind and version a Go type of its own: "+
			"a second struct, or for a Resource a second spec type as in `type WidgetSpecV2 WidgetSpec`", k.Type, other.gvk)
	}
	return nil
}

// checkKind returns an error for a Go type that cannot serve as a kind.
func (s *Scheme) checkKind(k *Kind) error {
	switch {
	case k.GVK.Version == "" || k.GVK.Kind == "":
		return fmt.Errorf("a kind needs a version and a name")
	case reserved(k.GVK):
		return fmt.Errorf("the name is reserved in every API; choose another one")
	case !k.untyped && (k.Schema != nil || k.HasConvert() || k.ListGVK.Kind != k.GVK.Kind+"List"):
		return fmt.Errorf("ListKind, Schema, Convert and ConvertAll are for kinds without a Go type; remove them: the Go type says what its objects are like, and AddConversion joins its versions")
	case k.convert != nil && k.convertAll != nil:
		return fmt.Errorf("Convert and ConvertAll are given both; leave one of them out")
	case k.untyped && len(k.Renamed) > 0:
		return fmt.Errorf("RenamedFields: the versions of a kind without a Go type have the same fields; remove them")
	case k.untyped:
		return checkFields(k)
	case k.Type.Kind() != reflect.Struct:
		return fmt.Errorf("type %v is no struct; a kind is a struct with TypeMeta and ObjectMeta", k.Type)
	}
	if f, ok := k.Type.FieldByName("TypeMeta"); !ok || f.Type != reflect.TypeFor[metav1.TypeMeta]() {
		return fmt.Errorf("type %v has no TypeMeta; embed metav1.TypeMeta with the tag `json:\",inline\"`", k.Type)
	}
	for i := range k.Type.NumField() {
		if f := k.Type.Field(i); f.Anonymous && f.Type.Kind() == reflect.Pointer {
			return fmt.Errorf("type %v embeds the pointer %v, which is nil in a new object; embed the struct itself", k.Type, f.Type)
		}
	}
	obj := k.New()
	if a, ok := obj.(metav1.ObjectMetaAccessor); !ok || !isObjectMeta(a.GetObjectMeta()) {
		return fmt.Errorf("type %v has no ObjectMeta; embed metav1.ObjectMeta with the tag `json:\"metadata,omitempty\"`", k.Type)
	}
	if got := reflect.TypeOf(obj.DeepCopyObject()); got != reflect.PointerTo(k.Type) {
		return fmt.Errorf("DeepCopyObject of *%v returns %v, the type it embeds; give it its own method: `func (x *%s) DeepCopyObject() runtime.Object { return runtime.DeepCopy(x) }`",
			k.Type, got, k.Type.Name())
	}
	if err := checkJSON(k); err != nil {
		return err
	}
	var err error
	if k.Constraints, err = s.constraints.Of(k.Type); err != nil {
		return err
	}
	return checkFields(k)
}

func isObjectMeta(o metav1.Object) bool {
	m, ok := o.(*metav1.ObjectMeta)
	return ok && m != nil
}

// checkJSON returns an error if the JSON of a type does not begin with kind and apiVersion, or does not show metadata, because a
// tag is wrong or missing. Clients could not read such an object.
func checkJSON(k *Kind) error {
	obj := k.New()
	obj.GetObjectKind().SetGroupVersionKind(k.GVK)
	objectMeta(obj).Name = "name"
	text, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("type %v cannot be written as JSON: %w", k.Type, err)
	}
	head, err := json.Marshal(metav1.TypeMeta{Kind: k.GVK.Kind, APIVersion: k.GVK.GroupVersion().String()})
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(text, bytes.TrimSuffix(head, []byte("}"))) {
		return fmt.Errorf("JSON of type %v does not begin with kind and apiVersion; make the first field `metav1.TypeMeta` with the tag `json:\",inline\"`", k.Type)
	}
	var seen struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(text, &seen); err != nil || seen.Metadata.Name != "name" {
		return fmt.Errorf("JSON of type %v has no metadata; give the field `metav1.ObjectMeta` the tag `json:\"metadata,omitempty\"`", k.Type)
	}
	return nil
}

// guard runs f and turns a panic into an error: the registration functions of apimachinery report errors by panics.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return f()
}
