// Package jsonfield returns the fields that a Go struct has in JSON, by the rules of encoding/json for embedding, tags and
// conflicting names. It uses reflection and caches nothing.
//
// See https://pkg.go.dev/encoding/json#Marshal for the rules.
package jsonfield

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Field is a struct field as encoding/json sees it.
type Field struct {
	// Go is the Go field.
	Go        reflect.StructField
	Declaring reflect.Type // the struct that declares the field
	At        []int        // index from the outer struct; several steps for a field of an embedded struct
	Name      string       // the name in JSON
	Tagged    bool         // Name is from the json tag
	OmitEmpty bool         // the option omitempty
	OmitZero  bool         // the option omitzero
	AsString  bool         // the option ",string" has an effect
}

// Parse reads the json tag of a field. ok is false if JSON does not have the field. inlined means that JSON has the fields of its
// struct instead. Declaring and At are not set.
func Parse(f reflect.StructField) (field Field, inlined, ok bool) {
	tag := f.Tag.Get("json")
	name, options, _ := strings.Cut(tag, ",")
	inner := Dereference(f.Type)
	isStruct := inner.Kind() == reflect.Struct
	if tag == "-" || !f.IsExported() && !(f.Anonymous && isStruct) {
		return Field{}, false, false
	}
	field = Field{Go: f, Name: cmp.Or(name, f.Name), Tagged: name != ""}
	if f.Anonymous && name == "" && isStruct {
		return field, true, true
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			field.OmitEmpty = true
		case "omitzero":
			field.OmitZero = true
		case "string":
			field.AsString = Stringable(inner.Kind())
		}
	}
	return field, false, true
}

// Void returns the name of the last field of a struct if the field is a struct{} with the option omitempty, and "" otherwise, as for the
// status of a kind without one. encoding/json writes such a field as {}, and this library leaves it out.
func Void(t reflect.Type) string {
	if t.Kind() != reflect.Struct || t.NumField() == 0 {
		return ""
	}
	last := t.Field(t.NumField() - 1)
	if last.Type != reflect.TypeFor[struct{}]() || last.Anonymous || Marshals(t) {
		return ""
	}
	if f, _, ok := Parse(last); ok && f.OmitEmpty && strings.Trim(f.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" {
		return f.Name
	}
	return ""
}

// Stringable reports whether the option ",string" has an effect on fields of a kind.
func Stringable(k reflect.Kind) bool {
	switch k {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64:
		return true
	}
	return k >= reflect.Int && k <= reflect.Uintptr
}

// Marshals reports whether a type, or a pointer to it, writes its own JSON.
func Marshals(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// Dereference returns the type that t points to through unnamed pointers. t may be nil.
func Dereference(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	return t
}

// Of returns the fields that a struct has in JSON, including those of embedded structs, in the order of declaration. If several
// fields have one name, the least deeply embedded field counts; of equally deep fields, the only one whose name is in its tag;
// otherwise none. others may be nil; it is called for fields that JSON does not have, and for embedded structs.
func Of(t reflect.Type, others func(declaring reflect.Type, f reflect.StructField, inlined bool)) []Field {
	all := collect(nil, t, nil, nil, others)
	byName := make(map[string][]Field, len(all))
	for _, f := range all {
		byName[f.Name] = append(byName[f.Name], f)
	}
	if len(byName) == len(all) {
		return all
	}
	return slices.DeleteFunc(all, func(f Field) bool { return !dominates(f, byName[f.Name]) })
}

// dominates reports whether f is the field that counts among the fields with its name.
func dominates(f Field, same []Field) bool {
	ties := 0
	for _, other := range same {
		switch c := compareRank(other, f); {
		case c < 0:
			return false
		case c == 0:
			ties++
		}
	}
	return ties == 1
}

func compareRank(a, b Field) int {
	untagged := func(f Field) int {
		if f.Tagged {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(len(a.At), len(b.At)), cmp.Compare(untagged(a), untagged(b)))
}

func collect(out []Field, t reflect.Type, at []int, within []reflect.Type, others func(reflect.Type, reflect.StructField, bool)) []Field {
	if slices.Contains(within, t) {
		return out // the struct embeds itself through a pointer
	}
	within = append(within[:len(within):len(within)], t)
	for i := range t.NumField() {
		f, inlined, ok := Parse(t.Field(i))
		if (!ok || inlined) && others != nil {
			others(t, t.Field(i), inlined)
		}
		if !ok {
			continue
		}
		index := append(at[:len(at):len(at)], i)
		if inlined {
			out = collect(out, Dereference(f.Go.Type), index, within, others)
			continue
		}
		f.Declaring, f.At = t, index
		out = append(out, f)
	}
	return out
}
