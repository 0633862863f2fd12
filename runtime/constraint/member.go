package constraint

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// member is a struct field as encoding/json sees it.
type member struct {
	reflect.StructField
	declaring reflect.Type
	at        []int  // index from the outer struct; several steps for a field of an embedded struct
	name      string // in JSON
	omitEmpty bool
	omitZero  bool
	asString  bool // the option ",string" has an effect
	tagged    bool // the name is from a tag
}

// memberOf reads the json tag of a field. false says that JSON does not have the field; inlined that it has the
// fields of its struct instead.
func memberOf(f reflect.StructField) (m member, inlined, ok bool) {
	tag := f.Tag.Get("json")
	name, options, _ := strings.Cut(tag, ",")
	inner, _ := dereference(f.Type)
	isStruct := inner.Kind() == reflect.Struct
	if tag == "-" || !f.IsExported() && !(f.Anonymous && isStruct) {
		return member{}, false, false
	}
	if f.Anonymous && name == "" && isStruct {
		return member{StructField: f}, true, true
	}
	if !f.IsExported() {
		return member{}, false, false
	}
	m = member{StructField: f, name: cmp.Or(name, f.Name), tagged: name != ""}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			m.omitEmpty = true
		case "omitzero":
			m.omitZero = true
		case "string":
			m.asString = stringable(inner.Kind())
		}
	}
	return m, false, true
}

// stringable tells whether the option ",string" has an effect on fields of a kind.
func stringable(k reflect.Kind) bool {
	switch k {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64:
		return true
	}
	return k >= reflect.Int && k <= reflect.Uintptr
}

// membersOf returns the JSON fields of a struct, those of embedded structs among them, in the order of their
// declaration. Of fields with one name, the least deeply embedded counts, of equally deep ones the only one with a
// name in its tag, else none. refuse is called for fields that JSON does not have and that are constrained all the
// same.
func membersOf(t reflect.Type, refuse func(declaring reflect.Type, f reflect.StructField, cause string)) []member {
	all := collect(nil, t, nil, nil, refuse)
	names := make(map[string]struct{}, len(all))
	for i := range all {
		names[all[i].name] = struct{}{}
	}
	if len(names) == len(all) {
		return all
	}
	byName := map[string][]member{}
	for _, m := range all {
		byName[m.name] = append(byName[m.name], m)
	}
	return slices.DeleteFunc(all, func(m member) bool { return !dominates(m, byName[m.name]) })
}

func dominates(m member, same []member) bool {
	ties := 0
	for _, other := range same {
		switch c := compareRank(other, m); {
		case c < 0:
			return false
		case c == 0:
			ties++
		}
	}
	return ties == 1
}

func compareRank(a, b member) int {
	untagged := func(m member) int {
		if m.tagged {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(len(a.at), len(b.at)), cmp.Compare(untagged(a), untagged(b)))
}

func collect(out []member, t reflect.Type, at []int, within []reflect.Type, refuse func(reflect.Type, reflect.StructField, string)) []member {
	if slices.Contains(within, t) {
		return out // a struct that embeds itself through a pointer
	}
	within = append(within[:len(within):len(within)], t)
	for i := range t.NumField() {
		f := t.Field(i)
		m, inlined, ok := memberOf(f)
		if (!ok || inlined) && refuse != nil {
			refuseTags(t, f, inlined, refuse)
		}
		if !ok {
			continue
		}
		index := append(at[:len(at):len(at)], i)
		if inlined {
			inner, _ := dereference(f.Type)
			out = collect(out, inner, index, within, refuse)
			continue
		}
		m.declaring, m.at = t, index
		out = append(out, m)
	}
	return out
}

// refuseTags refuses our tags at what is no field in JSON.
func refuseTags(declaring reflect.Type, f reflect.StructField, inlined bool, refuse func(reflect.Type, reflect.StructField, string)) {
	switch first, err := scanTags(f.Tag); {
	case err != nil:
		refuse(declaring, f, err.Error())
	case first == "":
	case inlined:
		refuse(declaring, f, "tag "+first+": the struct is embedded, and its fields are those of the outer one; put tags at the fields, or give the struct a name in its json tag")
	default:
		refuse(declaring, f, "tag "+first+": JSON does not have the field; export it and give it a name in its json tag, or take the tag away")
	}
}

// dereference returns the type that t points to, however often, and false for nil and for a pointer type that leads
// to no other.
func dereference(t reflect.Type) (reflect.Type, bool) {
	if t == nil {
		return nil, false
	}
	for range 8 {
		if t.Kind() != reflect.Pointer {
			return t, true
		}
		t = t.Elem()
	}
	return t, false
}

// indirect follows pointers; it returns the zero Value where one is nil.
func indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// field returns the field of a struct, or the zero Value when an embedded pointer on the way is nil.
func (m *member) of(v reflect.Value) reflect.Value {
	for i, x := range m.at {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v = v.Elem(); !v.IsValid() {
				return v
			}
		}
		v = v.Field(x)
	}
	return v
}

// make is of, but it makes the embedded structs on the way. The zero Value is returned where that cannot be done,
// as for a pointer to an unexported struct.
func (m *member) make(v reflect.Value) reflect.Value {
	for i, x := range m.at {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !v.CanSet() {
					return reflect.Value{}
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v
}
