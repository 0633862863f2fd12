package patch

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// plan describes how to compare objects of one Go type field by field without encoding them to JSON. The result is what
// structured-merge-diff would find with the model. A plan is made once for the type. Where the Go type and the model do not
// agree, the plan has a leaf of the form opaque. An object with a value there must be compared by structured-merge-diff.
type plan struct {
	goType reflect.Type
	root   *node
}

// form is the form of a value in JSON.
type form uint8

const (
	opaque form = iota
	aString
	aBool
	anInt
	aUint
	aFloat
	bytes64    // []byte
	aTime      // metav1.Time
	aMicroTime // metav1.MicroTime
	intOrText  // intstr.IntOrString
	aText      // metav1.Duration, resource.Quantity
	aStruct    // an object with known fields
	aMap       // an object with any members
	aList      // an array whose items are managed one by one, or which is atomic
	theEntries // metadata.managedFields
)

// node is the part of a plan for the values at one position.
type node struct {
	form     form
	pointers int  // number of pointers that lead to the value
	atomic   bool // managed as a whole, like a scalar
	fields   []planField
	item     *node     // of maps and lists
	keys     []listKey // of lists of type map; other lists are sets or atomic
}

// planField is a field of a struct.
type planField struct {
	name      string
	at        []int
	omitEmpty bool
	omitZero  bool
	node      *node
}

// listKey is one field of the key of list items.
type listKey struct {
	name     string
	field    *planField // nil if items do not have it
	fallback any        // the value for items without it: a string, a bool or nil
}

// newPlan returns the plan for the type of a kind, or nil if there is none.
func newPlan(t reflect.Type, schema *smdschema.Schema, ref smdschema.TypeRef) *plan {
	c := &planner{schema: schema, structs: map[structKey]*node{}, unfinished: map[*node]bool{}}
	root := c.node(t, ref)
	i := slices.IndexFunc(root.fields, func(f planField) bool { return f.name == "metadata" })
	if root.form != aStruct || root.atomic || i < 0 || implements[metav1.ListMetaAccessor](t) {
		return nil
	}
	f := &root.fields[i]
	if f.node.form != aStruct || f.node.atomic || f.node.pointers > 0 || fieldType(t, f.at) != reflect.TypeFor[metav1.ObjectMeta]() {
		return nil
	}
	metadata := *f.node // the managedFields of other objects inside the object are ordinary fields
	metadata.fields = slices.Clone(metadata.fields)
	for i := range metadata.fields {
		if metadata.fields[i].name == "managedFields" {
			metadata.fields[i].node = &node{form: theEntries}
		}
	}
	f.node = &metadata
	return &plan{goType: t, root: root}
}

// fieldType returns the type of a struct field.
func fieldType(t reflect.Type, at []int) reflect.Type { return t.FieldByIndex(at).Type }

// structKey identifies a struct type with one description.
type structKey struct {
	goType reflect.Type
	fields *smdschema.Map
}

type planner struct {
	schema  *smdschema.Schema
	structs map[structKey]*node
	// unfinished are the nodes of structs whose fields are not all known yet. A struct that contains itself meets such a node.
	unfinished map[*node]bool
}

func (c *planner) node(t reflect.Type, ref smdschema.TypeRef) *node {
	pointers := 0
	for t.Kind() == reflect.Pointer && t.Name() == "" {
		t, pointers = t.Elem(), pointers+1
	}
	atom, ok := c.schema.Resolve(ref)
	if !ok {
		return &node{}
	}
	var n *node
	switch {
	case atom.Scalar != nil: // scalars of a Go type, and null, are leaves even where the schema allows other values too
		n = scalarNode(t, *atom.Scalar)
	case atom.Map != nil && atom.List == nil:
		n = c.mapNode(t, atom.Map)
	case atom.List != nil && atom.Map == nil:
		n = c.listNode(t, atom.List)
	default: // the form depends on the value
		return &node{}
	}
	if pointers > 0 && n.form != opaque {
		through := *n
		if n.form == aStruct { // its fields may be unfinished
			through = node{form: aStruct, atomic: n.atomic, item: n}
		}
		through.pointers = pointers
		return &through
	}
	return n
}

// structure returns the fields of the node of a struct.
func (n *node) structure() []planField {
	if n.item != nil {
		return n.item.fields
	}
	return n.fields
}

func scalarNode(t reflect.Type, s smdschema.Scalar) *node {
	n := &node{}
	is := func(f form, what smdschema.Scalar) *node {
		if s == what || s == smdschema.Untyped {
			n.form = f
		}
		return n
	}
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return is(aTime, smdschema.String)
	case reflect.TypeFor[intstr.IntOrString]():
		return is(intOrText, smdschema.Untyped)
	case reflect.TypeFor[metav1.MicroTime]():
		return is(aMicroTime, smdschema.String)
	case reflect.TypeFor[metav1.Duration](), reflect.TypeFor[resource.Quantity]():
		return is(aText, smdschema.String)
	}
	if writesItself(t) {
		return n
	}
	switch t.Kind() {
	case reflect.String:
		if t != reflect.TypeFor[json.Number]() {
			return is(aString, smdschema.String)
		}
	case reflect.Bool:
		return is(aBool, smdschema.Boolean)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return is(anInt, smdschema.Numeric)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return is(aUint, smdschema.Numeric)
	case reflect.Float32, reflect.Float64:
		return is(aFloat, smdschema.Numeric)
	case reflect.Slice:
		if t.Elem() == reflect.TypeFor[byte]() {
			return is(bytes64, smdschema.String)
		}
	}
	return n
}

// writesItself reports whether a type implements its own JSON encoding.
func writesItself(t reflect.Type) bool {
	return implements[json.Marshaler](t) || implements[encoding.TextMarshaler](t)
}

func (c *planner) mapNode(t reflect.Type, m *smdschema.Map) *node {
	atomic := m.ElementRelationship == smdschema.Atomic
	switch {
	case writesItself(t):
	case t.Kind() == reflect.Struct:
		return c.structNode(t, m, atomic)
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && !writesItself(t.Key()) && len(m.Fields) == 0:
		return &node{form: aMap, atomic: atomic, item: c.node(t.Elem(), m.ElementType)}
	}
	return &node{}
}

func (c *planner) structNode(t reflect.Type, m *smdschema.Map, atomic bool) *node {
	key := structKey{t, m}
	if n := c.structs[key]; n != nil {
		return n
	}
	n := &node{form: aStruct, atomic: atomic}
	fields := jsonfield.Of(t, nil)
	if slices.ContainsFunc(fields, func(f jsonfield.Field) bool {
		return f.Tagged && strings.ContainsFunc(f.Name, oddInName) || throughPointer(t, f.At)
	}) {
		n = &node{}
	}
	c.structs[key] = n
	if n.form == opaque {
		return n
	}
	c.unfinished[n] = true
	defer delete(c.unfinished, n)
	for _, f := range fields {
		field := planField{name: f.Name, at: f.At, omitEmpty: f.OmitEmpty, omitZero: f.OmitZero, node: &node{}}
		ref := m.ElementType
		if described, ok := m.FindField(f.Name); ok {
			ref = described.Type
		}
		if !f.AsString && ref != (smdschema.TypeRef{}) && (!f.OmitZero || f.Go.Type == reflect.TypeFor[metav1.Time]() || !implements[isZeroer](f.Go.Type)) {
			field.node = c.node(f.Go.Type, ref)
		}
		if field.node.form == opaque { // the values for which the field is omitted are not known either
			field.omitZero = field.omitZero && !implements[isZeroer](f.Go.Type)
		}
		n.fields = append(n.fields, field)
	}
	return n
}

// isZeroer is the interface that the option omitzero of encoding/json uses.
// IsZero reports whether the value is omitted.
type isZeroer interface{ IsZero() bool }

// oddInName reports whether a rune is unusual in the name of a tag. encoding/json does not accept all such names.
func oddInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.' && r != '$' && r != '/'
}

// throughPointer reports whether a field is in an embedded struct pointer.
func throughPointer(t reflect.Type, at []int) bool {
	for _, i := range at[:len(at)-1] {
		if t = t.Field(i).Type; t.Kind() != reflect.Struct {
			return true
		}
	}
	return false
}

func (c *planner) listNode(t reflect.Type, l *smdschema.List) *node {
	if t.Kind() != reflect.Slice || writesItself(t) || t.Elem().Kind() == reflect.Uint8 {
		return &node{}
	}
	n := &node{form: aList, atomic: l.ElementRelationship == smdschema.Atomic, item: c.node(t.Elem(), l.ElementType)}
	switch {
	case n.atomic:
		return n
	case l.ElementRelationship != smdschema.Associative || n.item.pointers > 0:
	case len(l.Keys) == 0:
		if isKey(n.item) {
			return n
		}
	default:
		if c.addKeys(n, l) {
			return n
		}
	}
	return &node{}
}

// isKey reports whether the scalars of a node can be keys of list items.
func isKey(n *node) bool {
	return n.pointers == 0 && (n.form == aString || n.form == aBool || n.form == anInt || n.form == aUint)
}

// addKeys sets the keys of a list's items. It returns false if a key may be unknown. An item must have at least one key.
func (c *planner) addKeys(n *node, l *smdschema.List) bool {
	atom, ok := c.schema.Resolve(l.ElementType)
	if !ok || atom.Map == nil || n.item.form != aStruct || c.unfinished[n.item] {
		return false
	}
	always := false
	for _, name := range l.Keys {
		k := listKey{name: name}
		if i := slices.IndexFunc(n.item.fields, func(f planField) bool { return f.name == name }); i >= 0 {
			if k.field = &n.item.fields[i]; !isKey(k.field.node) {
				return false
			}
		}
		described, _ := atom.Map.FindField(name)
		switch described.Default.(type) {
		case string, bool:
			k.fallback, always = described.Default, true
		default:
			switch given := k.field != nil && !k.field.omitEmpty && !k.field.omitZero; {
			case given:
				always = true
			case described.Default != nil:
				return false
			}
		}
		n.keys = append(n.keys, k)
	}
	return always
}

// of returns the value of the field in a struct. The result is false if JSON omits the field.
func (f *planField) of(v reflect.Value) (reflect.Value, bool) {
	for _, i := range f.at {
		v = v.Field(i)
	}
	if f.omitEmpty && isEmpty(v) || f.omitZero && isZero(v) {
		return reflect.Value{}, false
	}
	return v, true
}

// isEmpty reports whether the option omitempty omits the value.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String, reflect.Map, reflect.Slice, reflect.Array:
		return v.Len() == 0
	case reflect.Struct, reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return false
	}
	return v.IsZero()
}

// isZero reports whether the option omitzero omits the value.
func isZero(v reflect.Value) bool {
	if v.Type() == reflect.TypeFor[metav1.Time]() {
		return pointerTo[metav1.Time](v).IsZero()
	}
	return v.IsZero()
}

// pointerTo returns a pointer to the value, or to a copy of it.
func pointerTo[T any](v reflect.Value) *T {
	if v.CanAddr() {
		return v.Addr().Interface().(*T)
	}
	t := v.Interface().(T)
	return &t
}
