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

// plan is how objects of one Go type are compared field by field without their JSON being made: what structured-merge-diff
// would find out of it with the model, worked out once for the type. What the two do not agree on is a leaf of the form
// opaque, and an object that has a value there is left to structured-merge-diff.
type plan struct {
	goType reflect.Type
	root   *node
}

// form is what a value is in JSON.
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
	aStruct    // an object with fields that are known
	aMap       // an object with others
	aList      // an array of which each item is managed, or which is atomic
	theEntries // metadata.managedFields
)

// node is a part of a plan: what holds for the values at one place.
type node struct {
	form     form
	pointers int  // that lead to the value
	atomic   bool // managed as a whole, like a scalar
	fields   []planField
	item     *node     // of maps and lists
	keys     []listKey // of lists that are maps; else they are sets, or atomic
}

// planField is a field of a struct.
type planField struct {
	name      string
	at        []int
	omitEmpty bool
	omitZero  bool
	node      *node
}

// listKey is a field that is a part of the key of a list's items.
type listKey struct {
	name     string
	field    *planField // nil: items do not have it
	fallback any        // for items without it: a string, a bool or nil
}

// newPlan returns the plan for a kind's type, or nil if there is none.
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
	metadata := *f.node // other objects in the object have entries that nobody reads
	metadata.fields = slices.Clone(metadata.fields)
	for i := range metadata.fields {
		if metadata.fields[i].name == "managedFields" {
			metadata.fields[i].node = &node{form: theEntries}
		}
	}
	f.node = &metadata
	return &plan{goType: t, root: root}
}

// fieldType is the type of a struct's field.
func fieldType(t reflect.Type, at []int) reflect.Type { return t.FieldByIndex(at).Type }

// structKey is a struct under one description.
type structKey struct {
	goType reflect.Type
	fields *smdschema.Map
}

type planner struct {
	schema  *smdschema.Schema
	structs map[structKey]*node
	// unfinished are those of structs of which not all fields are known yet: those that contain themselves.
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
	case atom.Scalar != nil: // a scalar of a Go type, and null, are leaves even where other things may be
		n = scalarNode(t, *atom.Scalar)
	case atom.Map != nil && atom.List == nil:
		n = c.mapNode(t, atom.Map)
	case atom.List != nil && atom.Map == nil:
		n = c.listNode(t, atom.List)
	default: // it depends on the value
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

// structure returns the fields of a struct's node.
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

// writesItself reports whether a type has a say in how it looks in JSON.
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
		if field.node.form == opaque { // what it is left out for is not known either
			field.omitZero = field.omitZero && !implements[isZeroer](f.Go.Type)
		}
		n.fields = append(n.fields, field)
	}
	return n
}

// isZeroer is what the option omitzero of encoding/json asks.
type isZeroer interface{ IsZero() bool }

// oddInName finds what names in tags usually do not have: encoding/json takes not all of it.
func oddInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.' && r != '$' && r != '/'
}

// throughPointer reports whether a field is one of an embedded pointer's struct.
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

// isKey reports whether scalars of a node tell items of a list from each other.
func isKey(n *node) bool {
	return n.pointers == 0 && (n.form == aString || n.form == aBool || n.form == anInt || n.form == aUint)
}

// addKeys says what the keys of a list's items are, or false if that can be unknown. An item must have one.
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

// of returns the field's value in a struct. false: JSON does not have it.
func (f *planField) of(v reflect.Value) (reflect.Value, bool) {
	for _, i := range f.at {
		v = v.Field(i)
	}
	if f.omitEmpty && isEmpty(v) || f.omitZero && isZero(v) {
		return reflect.Value{}, false
	}
	return v, true
}

// isEmpty is what the option omitempty asks.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String, reflect.Map, reflect.Slice, reflect.Array:
		return v.Len() == 0
	case reflect.Struct, reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return false
	}
	return v.IsZero()
}

// isZero is what the option omitzero asks.
func isZero(v reflect.Value) bool {
	if v.Type() == reflect.TypeFor[metav1.Time]() {
		return pointerTo[metav1.Time](v).IsZero()
	}
	return v.IsZero()
}

// pointerTo returns a pointer to a value, or to a copy.
func pointerTo[T any](v reflect.Value) *T {
	if v.CanAddr() {
		return v.Addr().Interface().(*T)
	}
	t := v.Interface().(T)
	return &t
}
