package patch

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// plainType is isPlain; seen has the types that are being looked at, or have been.
func plainType(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	if implements[json.Marshaler](t) {
		return true
	}
	if implements[encoding.TextMarshaler](t) {
		return false
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Float32, reflect.Float64:
		return true
	case reflect.Pointer:
		return t.Elem().Kind() != reflect.Pointer && plainType(t.Elem(), seen)
	case reflect.Map:
		return t.Key().Kind() == reflect.String && !implements[encoding.TextMarshaler](t.Key()) && plainType(t.Elem(), seen)
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8 && t.Elem().PkgPath() == "" || plainType(t.Elem(), seen)
	case reflect.Struct:
		return plainStruct(t, seen, map[string]bool{})
	}
	return false
}

// plainStruct looks at the fields of a struct; names has those of the struct around it that are inlined in one object.
func plainStruct(t reflect.Type, seen map[reflect.Type]bool, names map[string]bool) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		all := strings.Split(options, ",")
		inlined := slices.Contains(all, "inline")
		switch {
		case !f.IsExported(), slices.Contains(all, "string"), f.Anonymous && name == "" && !inlined, inlined && (name != "" || !f.Anonymous):
			return false
		case inlined:
			if f.Type.Kind() != reflect.Struct || !plainStruct(f.Type, seen, names) {
				return false
			}
			continue
		case name == "":
			name = f.Name
		}
		if names[name] || !plainType(f.Type, seen) {
			return false
		}
		names[name] = true
	}
	return true
}

func implements[I any](t reflect.Type) bool {
	i := reflect.TypeFor[I]()
	return t.Implements(i) || t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(i)
}
