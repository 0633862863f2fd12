package schema

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// jsonField is a field as encoding/json sees it.
type jsonField struct {
	reflect.StructField
	name      string // in JSON
	omitted   bool   // omitempty or omitzero
	asString  bool   // the option ",string"
	declaring reflect.Type
	docs      *comment // of the declaring type

	depth  int
	tagged bool
}

// jsonFields returns the fields of a struct, those of embedded structs among them, in the order of their
// declaration. Of fields with one name, the least deeply embedded counts, of equally deep ones the only tagged
// one, else none.
func (r *reflector) jsonFields(t reflect.Type, docs *comment) []jsonField {
	all := r.collectFields(nil, t, docs, 0, nil)
	byName := map[string][]jsonField{}
	for _, f := range all {
		byName[f.name] = append(byName[f.name], f)
	}
	return slices.DeleteFunc(all, func(f jsonField) bool { return !dominates(f, byName[f.name]) })
}

// dominates tells whether f is the field that a JSON name stands for.
func dominates(f jsonField, same []jsonField) bool {
	best := slices.MinFunc(same, rank)
	ties := 0
	for _, other := range same {
		if rank(best, other) == 0 {
			ties++
		}
	}
	return ties == 1 && rank(f, best) == 0
}

func rank(a, b jsonField) int {
	tag := func(f jsonField) int {
		if f.tagged {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(tag(a), tag(b)))
}

func (r *reflector) collectFields(out []jsonField, t reflect.Type, docs *comment, depth int, within []reflect.Type) []jsonField {
	if slices.Contains(within, t) {
		return out // a struct that embeds itself through a pointer
	}
	within = append(within, t)
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !f.IsExported() && !(f.Anonymous && dereference(f.Type).Kind() == reflect.Struct) {
			continue
		}
		if inner := dereference(f.Type); f.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			out = r.collectFields(out, inner, r.comment(inner), depth+1, within)
			continue
		}
		field := jsonField{StructField: f, name: name, tagged: name != "", depth: depth, declaring: t, docs: docs}
		if name == "" {
			field.name = f.Name
		}
		for option := range strings.SplitSeq(options, ",") {
			field.omitted = field.omitted || option == "omitempty" || option == "omitzero"
			field.asString = field.asString || option == "string" && stringable(f.Type)
		}
		out = append(out, field)
	}
	return out
}

// stringable tells whether the option ",string" has an effect on fields of a type.
func stringable(t reflect.Type) bool {
	switch k := dereference(t).Kind(); k {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64:
		return true
	default:
		return k >= reflect.Int && k <= reflect.Uintptr
	}
}
