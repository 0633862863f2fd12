package schema

import (
	"reflect"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const conventions = "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

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

// plainObject is the schema of a kind without a Go type: of its fields it is known that it has what all objects have. Clients
// do not take a kind without any.
func (r *reflector) plainObject(k Kind) spec.Schema {
	type object struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
	}
	s := withAnyFields(r.object(reflect.TypeFor[object](), nil))
	return described(s, k.GVK.Kind+" is a kind of "+k.GVK.GroupVersion().String()+".")
}

// kindText returns the comment of the kind: that of its own type, or for a kind made of a generic type, that of
// the alias which names it.
func (r *reflector) kindText(k Kind) string {
	if k.Type == nil {
		return ""
	}
	if strings.Contains(k.Type.Name(), "[") {
		return r.docs.ofAlias(k.GVK.Kind, plainFieldTypes(k.Type)).description()
	}
	return r.comment(k.Type).description()
}

// plainFieldTypes returns the types of a struct's fields that are not embedded: of a Resource, its Spec and Status.
func plainFieldTypes(t reflect.Type) []reflect.Type {
	var out []reflect.Type
	for i := range t.NumField() {
		if f := t.Field(i); !f.Anonymous {
			out = append(out, jsonfield.Dereference(f.Type))
		}
	}
	return out
}

// listName is the name of the definition of a kind's list, name that of the kind.
func (k Kind) listName(name string) string {
	if k.ListKind == "" || k.Object == nil {
		return name + "List"
	}
	return name[:strings.LastIndexByte(name, '.')+1] + k.ListKind
}

// listKind is the kind of a kind's lists.
func (k Kind) listKind() string {
	if k.ListKind == "" {
		return k.GVK.Kind + "List"
	}
	return k.ListKind
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

// plainList is the schema of a list without a Go type of its own.
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

// complete gives properties that have no description the usual one.
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
