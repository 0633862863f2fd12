package schema

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// addDescribed adds the definitions of a kind that has a Describer, and of its list.
func (r *reflector) addDescribed(k Kind, name string) {
	s := k.Object.OpenAPI()
	if s == nil {
		plain := r.plainObject(k)
		s = &plain
	} else {
		unfold(s)
		r.addObjectMeta(s)
		r.addEmbedded(s, false)
	}
	r.setDescribed(name, *s, k)
	r.addDescribedList(k, name)
}

// setDescribed sets a definition of a kind that has a Describer.
func (r *reflector) setDescribed(name string, s spec.Schema, k Kind) {
	if len(k.SelectableFields) > 0 {
		fields := make([]any, len(k.SelectableFields))
		for i, path := range k.SelectableFields {
			fields[i] = map[string]any{"fieldPath": path}
		}
		s.Extensions = withExtension(s.Extensions, extensionSelectableFields, fields)
	}
	r.out[name] = s
	setKinds(r.out, name, k.GVK)
}

// addDescribedList adds the list of a kind that has a Describer.
func (r *reflector) addDescribedList(k Kind, name string) {
	if k.WithoutList {
		return
	}
	list := k
	list.GVK.Kind = k.listKind()
	plural := firstOf(k.Plural, strings.ToLower(k.GVK.Kind))
	s := r.object(reflect.TypeFor[metav1.TypeMeta](), nil)
	s.Description, s.Required = list.GVK.Kind+" is a list of "+k.GVK.Kind, []string{"items"}
	item, items := reference(name), described(typed("array", ""), "List of "+plural+". "+conventions)
	items.Items = &spec.SchemaOrArray{Schema: &item}
	s.Properties["items"] = items
	s.Properties["metadata"] = wrapRef(described(r.schemaOf(reflect.TypeFor[metav1.ListMeta](), nil), "Standard list metadata. "+conventions+"#types-kinds"))
	r.setDescribed(k.listName(name), s, list)
}

// metaSchema is the schema of an object's metadata.
func (r *reflector) metaSchema() spec.Schema {
	return wrapRef(described(r.schemaOf(reflect.TypeFor[metav1.ObjectMeta](), nil), "Standard object's metadata. "+conventions+"#metadata"))
}

// addObjectMeta adds the properties that all objects have.
func (r *reflector) addObjectMeta(s *spec.Schema) {
	for name, property := range r.object(reflect.TypeFor[metav1.TypeMeta](), nil).Properties {
		s.SetProperty(name, property)
	}
	s.SetProperty("metadata", r.metaSchema())
}

// addEmbedded adds the properties of all objects to the embedded resources in s. In OpenAPI v2 an embedded resource that may have
// any fields gets no properties.
func (r *reflector) addEmbedded(s *spec.Schema, v2 bool) {
	eachPart(s, func(part *spec.Schema) { r.addEmbedded(part, v2) })
	if s.Extensions[extensionEmbedded] != true || v2 && s.Extensions[extensionPreserveUnknown] == true {
		return
	}
	s.SetProperty("apiVersion", described(typed("string", ""),
		"apiVersion defines the versioned schema of this representation of an object. "+conventions+"#resources"))
	s.SetProperty("kind", described(typed("string", ""),
		"kind is a string value representing the type of this object. In CamelCase. "+conventions+"#types-kinds"))
	s.SetProperty("metadata", r.metaSchema())
	s.Required = slices.Clone(s.Required)
	for _, name := range []string{"kind", "apiVersion"} {
		if !slices.Contains(s.Required, name) {
			s.Required = append(s.Required, name)
		}
	}
}

// eachPart calls change with the schemas of the properties, the elements and all other schemas inside s.
func eachPart(s *spec.Schema, change func(*spec.Schema)) {
	for name, property := range s.Properties {
		change(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		change(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		change(s.AdditionalProperties.Schema)
	}
}

// unfold replaces the extension for values that are integers or strings by anyOf.
func unfold(s *spec.Schema) {
	eachPart(s, unfold)
	if s.Extensions[extensionIntOrString] != true || isIntOrString(s.AnyOf) || len(s.AllOf) > 0 && isIntOrString(s.AllOf[0].AnyOf) {
		return
	}
	either := []spec.Schema{typed("integer", ""), typed("string", "")}
	if s.AnyOf == nil {
		s.AnyOf = either
	} else {
		s.AllOf = append([]spec.Schema{{SchemaProps: spec.SchemaProps{AnyOf: either}}}, s.AllOf...)
	}
}

func isIntOrString(anyOf []spec.Schema) bool {
	return len(anyOf) == 2 && reflect.DeepEqual(anyOf[0], typed("integer", "")) && reflect.DeepEqual(anyOf[1], typed("string", ""))
}

// structureV2 removes from s whatever OpenAPI v2 cannot express or its clients would misread. These clients do not accept null: a
// value that may be null gets no type and is not required. If an object may have unknown fields, they would reject the fields
// that are not named. They do not accept an array without a schema of its elements.
func structureV2(s *spec.Schema) {
	s.AllOf, s.AnyOf, s.OneOf, s.Not = nil, nil, nil, nil
	preserve := s.Extensions[extensionPreserveUnknown] == true
	if preserve || s.Nullable {
		s.Items, s.Properties = nil, nil
	}
	if s.Nullable || preserve && s.Type.Contains("object") || s.Items == nil && s.Type.Contains("array") {
		s.Type, s.Nullable = nil, false
	}
	s.Required = requiredV2(s)
	eachPart(s, structureV2)
}

// requiredV2 returns the required properties of s without those that may be null.
func requiredV2(s *spec.Schema) []string {
	if others := s.AdditionalProperties; others != nil && others.Schema != nil && others.Schema.Nullable {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Required), func(name string) bool { return s.Properties[name].Nullable })
}
