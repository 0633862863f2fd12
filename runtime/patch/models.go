package patch

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/schemaconv"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Models has the models by which objects of a scheme's kinds are merged field by field: which lists are sets or maps, by which
// keys, and which values are atomic. A model is made from the OpenAPI definition of its kind, so it always agrees with the
// published definition. For a kind without a Go type it is made from the MergeSchema of the kind's schema, if that is a Describer
// of package schema. The model of a kind is made when it is first needed. All methods may be called concurrently.
//
// Models implements managedfields.TypeConverter of apimachinery.
type Models struct {
	scheme *runtime.Scheme

	mu    sync.Mutex // guards the maps
	docs  map[schema.GroupVersionKind]*apischema.Docs
	kinds map[schema.GroupVersionKind]*model
}

var _ managedfields.TypeConverter = (*Models)(nil)

// model is the model of one kind, or the reason why there is none.
type model struct {
	parse typed.ParseableType
	plan  func() *plan // made when first needed; it returns nil if there is no plan
	err   error
}

// NewModels returns the models of the kinds of s, including kinds that are added later.
func NewModels(s *runtime.Scheme) *Models {
	return &Models{scheme: s, docs: map[schema.GroupVersionKind]*apischema.Docs{}, kinds: map[schema.GroupVersionKind]*model{}}
}

// SetDocs sets the doc comments of a kind's Go source. Their markers (+listType and others) have the same effect as struct tags.
// It must be called before the first request for the kind.
func (m *Models) SetDocs(gvk schema.GroupVersionKind, docs *apischema.Docs) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.docs[gvk] = docs
}

// Forget removes the models of kinds that are no longer in the scheme, or that will be replaced by others with the same name.
func (m *Models) Forget(kinds ...schema.GroupVersionKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, gvk := range kinds {
		delete(m.docs, gvk)
		delete(m.kinds, gvk)
	}
}

// of returns the model of a kind.
func (m *Models) of(gvk schema.GroupVersionKind) (*model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.kinds[gvk]
	if known == nil {
		kind := m.scheme.Lookup(gvk)
		if kind == nil { // not stored, because clients choose the name
			return nil, apiruntime.NewNotRegisteredErrForKind("keelson", gvk)
		}
		known = m.build(kind)
		m.kinds[gvk] = known
	}
	return known, known.err
}

// build makes a model. The caller holds mu.
func (m *Models) build(kind *runtime.Kind) *model {
	b := apischema.NewBuilder(apischema.Options{GroupVersion: kind.GVK.GroupVersion()})
	described := apischema.Kind{GVK: kind.GVK, Type: kind.Type, Docs: m.docs[kind.GVK], WithoutList: true}
	described.Object, _ = kind.Schema.(apischema.Describer)
	name := b.AddKind(described)
	definitions := b.MergeDefinitions()
	types, err := schemaconv.ToSchemaFromOpenAPI(definitions, false)
	if err != nil {
		return &model{err: fmt.Errorf("the fields of %s cannot be merged: %w", kind.GVK, err)}
	}
	parser := typed.Parser{Schema: smdschema.Schema{Types: types.Types}}
	parse := parser.Type(name)
	return &model{parse: parse, plan: sync.OnceValue(func() *plan { return newPlan(kind.Type, parse.Schema, parse.TypeRef) })}
}

// ObjectToTyped implements managedfields.TypeConverter. obj has its kind and apiVersion set. A Go value is converted through its
// JSON, as it is stored, and not by reflection. With reflection some types have other values, and an empty list differs from an
// absent one, so a request that changes nothing could count as a change.
func (m *Models) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	known, err := m.of(obj.GetObjectKind().GroupVersionKind())
	if err != nil {
		return nil, err
	}
	fields, size, err := fieldsOf(obj)
	if err != nil {
		return nil, err
	}
	if _, untyped := obj.(*unstructured.Unstructured); untyped && size.values > maxMisfits {
		m := misfits{schema: known.parse.Schema}
		if m.at(known.parse.TypeRef, fields); m.found > maxMisfits {
			return nil, fmt.Errorf("more than %d values are not of the type that the schema of %s says", maxMisfits, obj.GetObjectKind().GroupVersionKind().Kind)
		}
	}
	return known.parse.FromUnstructured(fields, opts...)
}

// fieldsOf returns the fields of an object as decoded JSON, and its extent. The fields of an untyped object are not copied.
func fieldsOf(obj runtime.Object) (fields map[string]any, size extent, err error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		fields = u.UnstructuredContent()
	} else {
		text, err := codec.Encode(obj)
		if err != nil {
			return nil, extent{}, err
		}
		if fields, err = mergeable(text); err != nil {
			return nil, extent{}, err
		}
	}
	if !size.add(fields, 0) {
		return nil, extent{}, &Error{Code: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the paths of all fields may not be more than %d bytes together", maxPathBytes)}
	}
	return fields, size, nil
}

// maxPathBytes is the maximum length of the paths of all values in an object together. structured-merge-diff writes the path of
// each value with an error or a conflict, so a long name around many values could take gigabytes.
const maxPathBytes = 16 << 20

// extent is the number of values in an object, and the approximate number of bytes of their paths together.
type extent struct{ values, paths int }

// add counts a value whose path has at bytes, and the values below it. It reports whether the paths are not too long so far.
func (e *extent) add(value any, at int) bool {
	e.values++
	if e.paths += at; e.paths > maxPathBytes {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if !e.add(member, at+len(name)+1) {
				return false
			}
		}
	case []any:
		const index = 8
		for _, element := range v {
			if !e.add(element, at+index) {
				return false
			}
		}
	}
	return true
}

// TypedToObject implements managedfields.TypeConverter. The result is an *unstructured.Unstructured.
func (m *Models) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	fields, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a %T is no object", value.AsValue().Unstructured())
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

// convertor adapts a scheme to the field managers of apimachinery. It also converts untyped objects of Go types. It does not copy
// an object that has the wanted version already, because the field managers do not change converted objects.
type convertor struct{ *runtime.Scheme }

// decode converts an untyped object to a typed one.
func (c convertor) decode(u *unstructured.Unstructured) (runtime.Object, error) {
	gvk := u.GroupVersionKind()
	kind := c.Lookup(gvk)
	if kind == nil {
		return nil, apiruntime.NewNotRegisteredErrForKind("keelson", gvk)
	}
	text, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	obj := kind.New()
	if _, err := codec.Unmarshal(text, obj, codec.Ignore); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, nil
}

// maxConverted bounds the number of values of an object that is converted for managers in other versions, times the number of
// these managers.
const maxConverted = 100_000

// checkWidth returns an error for an object that would take too long to be merged, or to be converted this number of times.
// Atomic values may have any size.
func (m *Models) checkWidth(obj runtime.Object, conversions int) error {
	if w := (&widthOf{}); w.of(reflect.ValueOf(obj)) && w.values*conversions <= maxConverted {
		return nil // small enough even if all fields are managed one by one
	}
	known, err := m.of(obj.GetObjectKind().GroupVersionKind())
	if err != nil {
		return err
	}
	fields, size, err := fieldsOf(obj) // not a typed value, which would take too long to make
	if err != nil {
		return err
	}
	if conversions > 0 && size.values > maxConverted/conversions {
		return &Error{
			Code: http.StatusRequestEntityTooLarge,
			Message: fmt.Sprintf("the object, of %d values, is too large to be converted for %d managers in other versions: their product may be %d",
				size.values, conversions, maxConverted),
		}
	}
	w := &managedWidth{schema: known.parse.Schema}
	w.at(known.parse.TypeRef, value.NewValueInterface(fields))
	if w.sum <= maxWidth {
		return nil
	}
	why := fmt.Sprintf("%s has %d members", strings.Join(w.widest, ""), w.most)
	if w.most < MaxMembers/2 {
		why = "it has too many fields, or fields that are nested too deeply"
	}
	return &Error{
		Code:    http.StatusRequestEntityTooLarge,
		Message: fmt.Sprintf("the object is too large to have its fields managed one by one: %s, about %d are the limit", why, MaxMembers),
	}
}
