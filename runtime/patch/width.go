package patch

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// MaxMembers bounds an object whose fields are managed one by one: one map, set or list of type map may have about this many
// members. The time of structured-merge-diff grows with the square of that number. The bound applies to a sum over the whole
// object: the squares of the numbers of members, and for each member a cost that grows with its depth. For example, 30,000 fields
// in small maps, or 10,000 fields at a depth of 40, are about the maximum.
const MaxMembers = 10000

// Costs, in comparisons of two members. Applying a configuration of cost maxWidth to an object of the same cost takes about half
// a second and 100 MiB.
const (
	maxWidth  = MaxMembers * (MaxMembers + perMember + 2*perLevel)
	perMember = 3300 // cost of a member
	perLevel  = 270  // additional cost of a member for each level above it
)

// widthOf adds the costs of all maps, slices and structs in a Go value, until the sum is too high.
type widthOf struct{ sum, depth, values int }

// enter counts a value with this number of members, and goes one level down.
func (w *widthOf) enter(members int) bool {
	w.depth++
	w.values += members
	w.sum += members * (members + perMember + w.depth*perLevel)
	return w.sum <= maxWidth
}

// of reports whether the sum is not too high and no part of the value is hidden. A type may hide data in unexported fields and
// encode them itself.
func (w *widthOf) of(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || w.of(v.Elem())
	case reflect.Struct:
		if isText(v.Type()) {
			return true
		}
		defer func() { w.depth-- }()
		if !w.enter(v.NumField()) {
			return false
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); !f.IsExported() && !isScalar(f.Type) || f.IsExported() && !w.of(v.Field(i)) {
				return false
			}
		}
	case reflect.Map:
		defer func() { w.depth-- }()
		if !w.enter(v.Len()) {
			return false
		}
		if isScalar(v.Type().Elem()) {
			return true
		}
		for members := v.MapRange(); members.Next(); {
			if !w.of(members.Value()) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Len() < MaxMembers || !implements[json.Marshaler](v.Type()) // otherwise it may be encoded as an object
		}
		defer func() { w.depth-- }()
		if !w.enter(v.Len()) {
			return false
		}
		if isScalar(v.Type().Elem()) {
			return true
		}
		for i := range v.Len() {
			if !w.of(v.Index(i)) {
				return false
			}
		}
	}
	return true
}

// isText reports whether a struct type is encoded as a text or a number in JSON, or is atomic.
func isText(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.FieldsV1](): // FieldsV1 is atomic
		return true
	}
	return false
}

func implements[I any](t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[I]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[I]())
}

func isScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Map, reflect.Slice, reflect.Array:
		return false
	}
	return true
}

// managedWidth is like widthOf for the values that a schema manages member by member.
type managedWidth struct {
	widthOf

	schema *smdschema.Schema
	most   int
	path   []string // names on the path to the current value
	widest []string // path of the value with the most members
}

func (w *managedWidth) at(t smdschema.TypeRef, v value.Value) {
	atom, ok := w.schema.Resolve(t)
	switch {
	case !ok || v == nil || v.IsNull():
	case v.IsMap() && atom.Map != nil && atom.Map.ElementRelationship != smdschema.Atomic:
		members := v.AsMap()
		defer func() { w.depth-- }()
		if !w.add(members.Length()) {
			return
		}
		members.Iterate(func(name string, member value.Value) bool {
			of := atom.Map.ElementType
			if f, ok := atom.Map.FindField(name); ok {
				of = f.Type
			}
			w.below(of, member, ".", name)
			return w.sum <= maxWidth
		})
	case v.IsList() && atom.List != nil && atom.List.ElementRelationship != smdschema.Atomic:
		items := v.AsList()
		defer func() { w.depth-- }()
		if !w.add(items.Length()) {
			return
		}
		for i := 0; i < items.Length() && w.sum <= maxWidth; i++ {
			w.below(atom.List.ElementType, items.At(i), "[]")
		}
	}
}

// below calls at for a member.
func (w *managedWidth) below(t smdschema.TypeRef, v value.Value, steps ...string) {
	n := len(w.path)
	w.path = append(w.path, steps...)
	w.at(t, v)
	w.path = w.path[:n]
}

func (w *managedWidth) add(members int) bool {
	if members > w.most {
		w.most, w.widest = members, slices.Clone(w.path)
	}
	return w.enter(members)
}
