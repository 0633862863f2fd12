package schema

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const conventions = "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

// plainObject returns the schema of a kind without a Go type: it has the properties of all objects and allows any other field.
// Clients do not accept a kind without any properties.
func (r *reflector) plainObject(k Kind) spec.Schema {
	type object struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
	}
	s := withAnyFields(r.object(reflect.TypeFor[object](), nil))
	return described(s, k.GVK.Kind+" is a kind of "+k.GVK.GroupVersion().String()+".")
}

// kindText returns the comment of the kind: that of its own type, or for a generic type, that of the alias which declares the
// kind.
func (r *reflector) kindText(k Kind) string {
	if k.Type == nil {
		return ""
	}
	if strings.Contains(k.Type.Name(), "[") {
		return r.docs.ofAlias(k.GVK.Kind, plainFieldTypes(k.Type)).description()
	}
	return r.comment(k.Type).description()
}

// plainFieldTypes returns the types of a struct's fields that are not embedded, such as Spec and Status of a Resource.
func plainFieldTypes(t reflect.Type) []reflect.Type {
	var out []reflect.Type
	for i := range t.NumField() {
		if f := t.Field(i); !f.Anonymous {
			out = append(out, jsonfield.Dereference(f.Type))
		}
	}
	return out
}

// plainList returns the schema of a list without a Go type of its own.
func (r *reflector) plainList(item string) spec.Schema {
	type list struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata,omitempty"`
		Items           []struct{} `json:"items"`
	}
	s := r.object(reflect.TypeFor[list](), nil)
	items := typed("array", "")
	ref := reference(item)
	items.Items = &spec.SchemaOrArray{Schema: &ref}
	s.Properties["items"] = items
	return s
}

// complete sets the usual description of properties that have none.
func complete(s spec.Schema, texts map[string]string) {
	for name, text := range texts {
		if p, ok := s.Properties[name]; ok && p.Description == "" {
			p.Description = text
			s.Properties[name] = wrapRef(p)
		}
	}
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// setKinds marks a definition as the schema of kinds. Kinds without a version and definitions that do not exist are ignored.
func setKinds(out map[string]spec.Schema, name string, kinds ...schema.GroupVersionKind) {
	s, ok := out[name]
	if !ok {
		return
	}
	list := []any{}
	for i, gvk := range kinds {
		if gvk.Version == "" || slices.Contains(kinds[:i], gvk) {
			continue
		}
		list = append(list, map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind})
	}
	s.Extensions = withExtension(s.Extensions, extensionKinds, list)
	out[name] = s
}
