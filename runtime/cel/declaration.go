package cel

import (
	celgo "github.com/google/cel-go/cel"
)

// DeclType describes a type, together with the sizes that cost estimates need: how many elements a value may have, and how short
// a value may be. [Scalar], [List], [Map] and [Object] make one. It must not change once it belongs to an [Environment].
type DeclType struct {
	// MaxElements is the maximum number of elements of a list or a map, and the maximum number of bytes of a string. [Unbounded]
	// means that the maximum is not known. It is zero for other scalars and for objects, whose size does not matter.
	MaxElements int64
	// MinSize is the minimum number of bytes of a value in JSON.
	MinSize int64

	// Fields has the fields of an object by their names in expressions; see [Escape]. It is nil for other types.
	Fields map[string]*DeclField
	// Key is the type of the keys of a map. Elem is the type of the elements of a list or a map.
	Key, Elem *DeclType

	name string
	typ  *celgo.Type
}

// DeclField is a field of an object.
type DeclField struct {
	Name     string    // Name is the name of the field in expressions.
	Type     *DeclType // Type is the type of the value of the field.
	Required bool      // Required means that every object has the field.
}

// Unbounded means that a size is not known.
const Unbounded int64 = -1

// unnamed is the name of an object type before [DeclType.Named] gives it one.
const unnamed = "object"

// Scalar returns a type for the cel-go type typ, for values whose size does not matter. minSize is the minimum number of bytes in
// JSON.
func Scalar(typ *celgo.Type, minSize int64) *DeclType {
	return &DeclType{name: typ.TypeName(), typ: typ, MinSize: minSize}
}

// ScalarOf returns a type like [Scalar] whose values have at most maxElements bytes.
func ScalarOf(typ *celgo.Type, minSize, maxElements int64) *DeclType {
	t := Scalar(typ, minSize)
	t.MaxElements = maxElements
	return t
}

// Dyn returns the type of values that may have any type and any size.
func Dyn() *DeclType { return ScalarOf(celgo.DynType, 1, Unbounded) }

// Bool returns the type of booleans.
func Bool() *DeclType { return Scalar(celgo.BoolType, MinBoolSize) }

// Int returns the type of signed 64-bit integers.
func Int() *DeclType { return Scalar(celgo.IntType, MinNumberSize) }

// Double returns the type of floating-point numbers.
func Double() *DeclType { return Scalar(celgo.DoubleType, MinNumberSize) }

// String returns the type of strings of at most maxElements bytes.
func String(maxElements int64) *DeclType {
	return ScalarOf(celgo.StringType, MinStringSize, maxElements)
}

// List returns the type of lists with at most maxItems elements of type elem.
func List(elem *DeclType, maxItems int64) *DeclType {
	return &DeclType{name: "list", Elem: elem, MaxElements: maxItems, MinSize: 2, typ: celgo.ListType(elem.typ)}
}

// Map returns the type of maps with at most maxProperties entries.
func Map(key, elem *DeclType, maxProperties int64) *DeclType {
	return &DeclType{name: "map", Key: key, Elem: elem, MaxElements: maxProperties, MinSize: 2, typ: celgo.MapType(key.typ, elem.typ)}
}

// Object returns the type of objects with the given fields. If name is empty, [DeclType.Named] can set a name later. MinSize of
// the result is 2; the caller may raise it.
func Object(name string, fields map[string]*DeclField) *DeclType {
	if name == "" {
		name = unnamed
	}
	if fields == nil {
		fields = map[string]*DeclField{}
	}
	return &DeclType{name: name, Fields: fields, MinSize: 2, typ: celgo.ObjectType(name)}
}

// Name returns the name of the type in messages.
func (t *DeclType) Name() string { return t.name }

// Type returns the type for the type checker of cel-go.
func (t *DeclType) Type() *celgo.Type { return t.typ }

// IsObject reports whether the type has fields.
func (t *DeclType) IsObject() bool { return t.Fields != nil }

// HasObjects reports whether the type is an object type or has one in it.
func (t *DeclType) HasObjects() bool { return t != nil && (t.Fields != nil || t.Elem.HasObjects()) }

// Named returns the type with a name for each unnamed object type in it. The name is root followed by the path to the object
// type, as in root.spec.containers.@idx or root.labels.@elem. Types are distinguished only by their names, so an Environment must
// not have two types with the same name.
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

// Variable is a variable that expressions may use.
type Variable struct {
	Name string    // Name is the name of the variable in expressions.
	Type *DeclType // Type is the type of its values.
	// Optional gives the variable the type optional(Type).
	Optional bool
	// SizesOthers means that cost estimates use the size of this variable also for names that are not variables, such as names of
	// types. Rules in schemas set it, because the cost estimates of kube-apiserver for such rules do not compare the name of the
	// variable.
	SizesOthers bool
}
