package cel

import (
	celgo "github.com/google/cel-go/cel"
)

// DeclType is a type with what the estimates of costs need of it: how many elements it may have, and how short it may be.
// It is made by [Scalar], [List], [Map] and [Object], and not changed any more once an [Environment] has it.
type DeclType struct {
	// MaxElements is how many elements a list or a map may have, and how many bytes a string; [Unbounded] if nobody knows. It
	// is zero of other scalars and of objects, whose size does not matter.
	MaxElements int64
	// MinSize is how few bytes it has as JSON.
	MinSize int64

	// Fields are of an object, by their names in expressions: [Escape].
	Fields map[string]*DeclField
	// Key is of a map, Elem of a list and of a map.
	Key, Elem *DeclType

	name string
	typ  *celgo.Type
}

// DeclField is a member of an object.
type DeclField struct {
	Name     string
	Type     *DeclType
	Required bool
}

// Unbounded is a size that is not known.
const Unbounded int64 = -1

// unnamed is the name of objects before [DeclType.Named].
const unnamed = "object"

// Scalar is a type of cel-go whose values have no size that matters.
func Scalar(typ *celgo.Type, minSize int64) *DeclType {
	return &DeclType{name: typ.TypeName(), typ: typ, MinSize: minSize}
}

// ScalarOf is a scalar whose values have at most so many bytes.
func ScalarOf(typ *celgo.Type, minSize, maxElements int64) *DeclType {
	t := Scalar(typ, minSize)
	t.MaxElements = maxElements
	return t
}

// Dyn is what has any type, and any size.
func Dyn() *DeclType { return ScalarOf(celgo.DynType, 1, Unbounded) }

// Bool is true or false.
func Bool() *DeclType { return Scalar(celgo.BoolType, MinBoolSize) }

// Int is a signed number of 64 bits.
func Int() *DeclType { return Scalar(celgo.IntType, MinNumberSize) }

// Double is a number with a fraction.
func Double() *DeclType { return Scalar(celgo.DoubleType, MinNumberSize) }

// String is text of at most so many bytes.
func String(maxElements int64) *DeclType {
	return ScalarOf(celgo.StringType, MinStringSize, maxElements)
}

// List has elements of one type.
func List(elem *DeclType, maxItems int64) *DeclType {
	return &DeclType{name: "list", Elem: elem, MaxElements: maxItems, MinSize: 2, typ: celgo.ListType(elem.typ)}
}

// Map has elements of one type by keys of one type.
func Map(key, elem *DeclType, maxProperties int64) *DeclType {
	return &DeclType{name: "map", Key: key, Elem: elem, MaxElements: maxProperties, MinSize: 2, typ: celgo.MapType(key.typ, elem.typ)}
}

// Object has fields. Without a name it gets one by [DeclType.Named]; its MinSize is the caller's to raise.
func Object(name string, fields map[string]*DeclField) *DeclType {
	if name == "" {
		name = unnamed
	}
	if fields == nil {
		fields = map[string]*DeclField{}
	}
	return &DeclType{name: name, Fields: fields, MinSize: 2, typ: celgo.ObjectType(name)}
}

// Name is how messages name the type.
func (t *DeclType) Name() string { return t.name }

// Type is what the type checker knows of it.
func (t *DeclType) Type() *celgo.Type { return t.typ }

// IsObject says that it has fields.
func (t *DeclType) IsObject() bool { return t.Fields != nil }

// Named is the type with names for all objects in it that have none: that of the root, and after it the path to them, as in
// root.spec.containers.@idx or root.labels.@elem. Types are told apart by their names only, so one name is for one type in
// an Environment.
func (t *DeclType) Named(root string) *DeclType {
	switch {
	case t.Fields != nil:
		name := t.name
		changed := name == unnamed
		if changed {
			name = root
		}
		fields := make(map[string]*DeclField, len(t.Fields))
		for key, f := range t.Fields {
			named := f.Type.Named(name + "." + key)
			if named == f.Type {
				fields[key] = f
				continue
			}
			changed = true
			fields[key] = &DeclField{Name: f.Name, Type: named, Required: f.Required}
		}
		if !changed {
			return t
		}
		object := Object(name, fields)
		object.MinSize, object.MaxElements = t.MinSize, t.MaxElements
		return object
	case t.Key != nil:
		if elem := t.Elem.Named(root + ".@elem"); elem != t.Elem {
			return Map(t.Key, elem, t.MaxElements)
		}
	case t.Elem != nil:
		if elem := t.Elem.Named(root + ".@idx"); elem != t.Elem {
			return List(elem, t.MaxElements)
		}
	}
	return t
}

// Variable is a name that expressions may use.
type Variable struct {
	Name string
	Type *DeclType
	// Optional makes it of type optional(Type).
	Optional bool
	// SizesOthers says that in estimates of costs names that are no variables, such as those of types, are as large as this
	// one. It is so for rules in schemas: kube-apiserver does not look at the name there.
	SizesOthers bool
}
