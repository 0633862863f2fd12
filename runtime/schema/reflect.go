package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// The extensions of Kubernetes in schemas.
const (
	extensionKinds            = "x-kubernetes-group-version-kind"
	extensionListType         = "x-kubernetes-list-type"
	extensionListMapKeys      = "x-kubernetes-list-map-keys"
	extensionMapType          = "x-kubernetes-map-type"
	extensionPatchStrategy    = "x-kubernetes-patch-strategy"
	extensionPatchMergeKey    = "x-kubernetes-patch-merge-key"
	extensionPreserveUnknown  = "x-kubernetes-preserve-unknown-fields"
	extensionEmbedded         = "x-kubernetes-embedded-resource"
	extensionIntOrString      = "x-kubernetes-int-or-string"
	extensionSelectableFields = "x-kubernetes-selectable-fields"
)

// reflector makes schemas of Go types, and stores those of named types in out.
type reflector struct {
	names *names
	out   map[string]spec.Schema
	docs  *Docs // of the present kind

	within     []reflect.Type // the named lists and maps around the present type, to end the description of one that contains itself
	swagger    map[reflect.Type]map[string]string
	kubernetes kubernetesTypes
}

func newReflector(n *names) *reflector {
	return &reflector{
		names: n, out: map[string]spec.Schema{}, swagger: map[reflect.Type]map[string]string{}, kubernetes: kubernetesTypes{},
	}
}

// schemaOf returns the schema of a value of type t: for a named struct a reference. c is the comment of the field that has the
// type, for anonymous structs inside it.
func (r *reflector) schemaOf(t reflect.Type, c *comment) spec.Schema {
	t = jsonfield.Dereference(t)
	if s, ok := r.special(t); ok {
		return s
	}
	switch t.Kind() {
	case reflect.Struct:
		if t.Name() == "" {
			return r.object(t, c)
		}
		r.define(t)
		return reference(r.names.of(t))
	case reflect.Slice, reflect.Array, reflect.Map:
		return r.collection(t, c)
	case reflect.Pointer: // a named pointer type
		return r.schemaOf(t.Elem(), c)
	}
	s := primitive(t.Kind())
	if c, ok := r.kubernetes.ofType(t); ok { // the values of a program's own types are those in struct tags, because these are enforced
		s.Enum = c.marks().enum()
	}
	return s
}

// special returns the schema of a type whose JSON does not follow from its Go structure.
func (r *reflector) special(t reflect.Type) (spec.Schema, bool) {
	if s, ok := wellKnown(t); ok {
		if name := modelName(t); name != "" {
			r.out[r.names.of(t)] = s
			return reference(r.names.of(t)), true
		}
		return s, true
	}
	if _, ok := methods[json.Marshaler](t); ok {
		return anything(), true
	}
	if _, ok := methods[encoding.TextMarshaler](t); ok {
		return typed("string", ""), true
	}
	return spec.Schema{}, false
}

func (r *reflector) collection(t reflect.Type, c *comment) spec.Schema {
	if t.Name() != "" {
		if slices.Contains(r.within, t) {
			return anything()
		}
		r.within = append(r.within, t)
		defer func() { r.within = r.within[:len(r.within)-1] }()
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return typed("string", "byte")
	}
	elem := r.schemaOf(t.Elem(), c)
	if t.Kind() == reflect.Map {
		s := typed("object", "")
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &elem}
		return s
	}
	s := typed("array", "")
	s.Items = &spec.SchemaOrArray{Schema: &elem}
	return s
}

// define adds the definition of a named struct, once.
func (r *reflector) define(t reflect.Type) {
	name := r.names.of(t)
	if _, ok := r.out[name]; ok {
		return
	}
	if s, ok := r.special(t); ok {
		if s.Ref.String() == "" {
			r.out[name] = s
		}
		return
	}
	r.out[name] = spec.Schema{} // so that types can refer to themselves
	r.out[name] = r.object(t, r.comment(t))
}

// object returns the schema of a struct with its fields.
func (r *reflector) object(t reflect.Type, docs *comment) spec.Schema {
	s := typed("object", "")
	s.Description = docs.description()
	if text := r.swaggerDoc(t)[""]; text != "" {
		s.Description = text
	}
	setMapType(&s, docs.marks())
	for _, f := range r.jsonFields(t, docs) {
		if s.Properties == nil {
			s.Properties = map[string]spec.Schema{}
		}
		property, required := r.property(f)
		if required {
			s.Required = append(s.Required, f.name)
		}
		s.Properties[f.name] = property
	}
	return s
}

// property returns the schema of one field.
func (r *reflector) property(f jsonField) (s spec.Schema, required bool) {
	c := f.docs.field(f.Name)
	s = r.schemaOf(f.Type, c)
	if f.asString {
		s = typed("string", "")
	}
	if d := r.defaultOf(f, s, c.marks()); d != nil {
		s.Default = d
	}
	description := c.description()
	if text := r.swaggerDoc(f.declaring)[f.name]; text != "" {
		description = text
		if c.marks().has("cut") {
			description = strings.TrimRight(text, " \n:-") + " ... (The rest of this text is in https://kubernetes.io/docs/reference/kubernetes-api/.)"
		}
	}
	if description != "" {
		s.Description = description
	}
	r.setListExtensions(&s, f, c.marks())
	s.Nullable = c.marks().has("nullable")
	required = !f.omitted && f.Type.Kind() != reflect.Pointer
	if c.marks().has("required") {
		required = true
	} else if c.marks().has("optional") {
		required = false
	}
	required = constrain(&s, f, required)
	return wrapRef(s), required
}

// defaultOf returns the value of a field that a client leaves out, as far as it follows from Go's rules: an empty object for
// structs, and the zero value for fields of plain types that are always written.
func (r *reflector) defaultOf(f jsonField, s spec.Schema, m markers) any {
	if v, ok := taggedDefault(f); ok {
		return v
	}
	if v, ok := m.defaultValue(); ok {
		return v
	}
	t := f.Type
	if _, special := r.special(t); special || f.asString {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return map[string]any{}
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map, reflect.Interface:
		return nil
	}
	switch {
	case f.omitted:
		return nil
	case s.Type.Contains("string"):
		return ""
	case s.Type.Contains("boolean"):
		return false
	case s.Type.Contains("integer"), s.Type.Contains("number"):
		return 0
	}
	return nil
}
