package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// names assigns a unique name to every Go type.
type names struct {
	prefix string // "com.example.v1."
	byType map[reflect.Type]string
	taken  map[string]bool
}

func newNames(gv schema.GroupVersion) *names {
	return &names{prefix: modelPrefix(gv), byType: map[reflect.Type]string{}, taken: map[string]bool{}}
}

// modelPrefix returns the prefix of all names in a group and version: the reversed labels of the group, and the version. The core
// group has no labels.
func modelPrefix(gv schema.GroupVersion) string {
	var parts []string
	if gv.Group != "" {
		parts = strings.Split(gv.Group, ".")
		slices.Reverse(parts)
	}
	if gv.Version != "" {
		parts = append(parts, gv.Version)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ".") + "."
}

func (n *names) known(t reflect.Type) (string, bool) {
	name, ok := n.byType[t]
	return name, ok
}

// addKind names a kind, and reserves the name of its list.
func (n *names) addKind(k Kind) string {
	name := modelName(k.Type)
	if name == "" {
		name = n.free(modelPrefix(k.GVK.GroupVersion())+k.GVK.Kind, k.Type)
	}
	n.taken[name], n.taken[k.listName(name)] = true, true
	if k.Type != nil {
		n.byType[k.Type] = name
	}
	if k.ListType != nil {
		n.byType[k.ListType] = k.listName(name)
	}
	return name
}

// of returns the name of a struct type, and assigns one if the type has none yet.
func (n *names) of(t reflect.Type) string {
	if name, ok := n.byType[t]; ok {
		return name
	}
	name := modelName(t)
	if name == "" {
		name = n.free(n.prefix+goName(t.Name()), t)
	}
	n.taken[name] = true
	n.byType[t] = name
	return name
}

// free returns want, or if another type has that name, want with the package of t.
func (n *names) free(want string, t reflect.Type) string {
	if !n.taken[want] {
		return want
	}
	at := strings.LastIndexByte(want, '.') + 1
	if pkg := packageName(t); pkg != "" {
		want = want[:at] + pkg + "." + want[at:]
	}
	for name, i := want, 2; ; i++ {
		if !n.taken[name] {
			return name
		}
		name = fmt.Sprintf("%s_%d", want, i)
	}
}

// modelName returns the name that a type has in every API: the result of its OpenAPIModelName method, or for other types of
// Kubernetes their import path in the same form. For all other types it returns "".
func modelName(t reflect.Type) string {
	type namer interface{ OpenAPIModelName() string }
	if t == nil {
		return ""
	}
	if v, ok := methods[namer](t); ok && !promoted(t, func(f reflect.Type) bool {
		inner, ok := methods[namer](f)
		return ok && inner.OpenAPIModelName() == v.OpenAPIModelName()
	}) {
		return v.OpenAPIModelName()
	}
	path, ok := strings.CutPrefix(t.PkgPath(), "k8s.io/")
	if !ok || t.Name() == "" {
		return ""
	}
	return "io.k8s." + strings.ReplaceAll(path, "/", ".") + "." + goName(t.Name())
}

// methods returns a new value of type *t as an I, if *t implements I.
func methods[I any](t reflect.Type) (I, bool) {
	var none I
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return none, false
	}
	sample := reflect.New(t)
	v, ok := sample.Interface().(I)
	if ok && t.Kind() == reflect.Struct {
		for i := range t.NumField() { // a method promoted from a nil pointer would panic
			if f := t.Field(i); f.Anonymous && f.IsExported() && f.Type.Kind() == reflect.Pointer {
				sample.Elem().Field(i).Set(reflect.New(f.Type.Elem()))
			}
		}
	}
	return v, ok
}

// promoted reports whether a struct has a method only because it embeds a type, where same reports whether an embedded type has
// the same method.
func promoted(t reflect.Type, same func(reflect.Type) bool) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && same(jsonfield.Dereference(f.Type)) {
			return true
		}
	}
	return false
}

// goName converts a Go type name to one that is valid for a definition: the generic type Page[example.com/a.Item] becomes
// Page_Item.
func goName(name string) string {
	var out strings.Builder
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("[], *{}; ", r) }) {
		word = word[strings.LastIndexAny(word, "/.")+1:]
		if out.Len() > 0 {
			out.WriteByte('_')
		}
		for _, r := range word {
			if r < 128 && (r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
				out.WriteRune(r)
			} else {
				fmt.Fprintf(&out, "_%x", r)
			}
		}
	}
	return out.String()
}

// packageName returns the name, not the path, of the package that declares t.
func packageName(t reflect.Type) string {
	if t == nil || t.Name() == "" {
		return ""
	}
	qualified, _, _ := strings.Cut(t.String(), "[")
	pkg, _, ok := strings.Cut(qualified, ".")
	if !ok {
		return ""
	}
	return pkg
}

// listName returns the name of the definition of a kind's list; name is that of the kind.
func (k Kind) listName(name string) string {
	if k.ListKind == "" || k.Object == nil {
		return name + "List"
	}
	return name[:strings.LastIndexByte(name, '.')+1] + k.ListKind
}

// listKind returns the kind of a kind's list.
func (k Kind) listKind() string {
	if k.ListKind == "" {
		return k.GVK.Kind + "List"
	}
	return k.ListKind
}
