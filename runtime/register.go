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

// Register adds the kind gvk, whose objects are of Go type T, with a list type made for it. It refuses, naming
// the cure: an empty version or kind, a kind registered already, a Go type that stands for another kind or
// version already, a type without TypeMeta or ObjectMeta or whose JSON does not show them, a type whose
// DeepCopyObject returns another type (it embeds a Resource), a selectable field that the type does not have, and
// struct tags that package constraint does not understand.
//
// With T *unstructured.Unstructured the kind has no Go type. Many kinds and versions may be registered so: see the
// package's documentation.
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

// checkFree refuses a kind, name or Go type that is taken. The caller holds mu.
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

// checkKind refuses Go types that cannot serve as a kind.
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

// checkJSON refuses a type whose JSON does not begin with kind and apiVersion, or hides metadata: a wrong or
// missing tag. Nobody could read such an object.
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

// guard runs f and makes an error of a panic: apimachinery's registration functions report by panicking.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return f()
}
