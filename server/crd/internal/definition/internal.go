package definition

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxShown is the maximum number of bytes of a part of a definition in an error. There may be an error for each level of a
// schema, and each of them shows all levels below.
const maxShown = 64 << 10

// internalForm returns a part of a definition as errors of kube-apiserver show it: as the JSON of an internal type, with the
// names of Go fields and without omitting empty fields. A part longer than maxShown is not shown.
func internalForm(part any) any {
	var w internalWriter
	w.value(reflect.ValueOf(part))
	if w.full() {
		return field.OmitValueType{}
	}
	return json.RawMessage(w.b.Bytes())
}

// internalWriter writes the internal form, and stops when it is too long.
type internalWriter struct {
	b    bytes.Buffer
	long bool // a text or a map
}

func (w *internalWriter) full() bool { return w.long || w.b.Len() > maxShown }

func (w *internalWriter) value(v reflect.Value) {
	switch kind := v.Kind(); {
	case w.full():
	case (kind == reflect.String || kind == reflect.Map) && v.Len() > maxShown:
		w.long = true
	case (kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Map) && v.IsNil():
		w.b.WriteString("null")
	case kind == reflect.Pointer:
		w.value(v.Elem())
	case kind == reflect.Slice:
		w.list(v)
	case kind == reflect.Map:
		w.object(v)
	case kind == reflect.Struct:
		w.fields(v)
	default:
		w.json(v.Interface()) // a string, a number or a boolean
	}
}

func (w *internalWriter) json(v any) {
	text, _ := json.Marshal(v) // it was decoded from JSON
	w.b.Write(text)
}

func (w *internalWriter) list(v reflect.Value) {
	w.b.WriteByte('[')
	for i := 0; i < v.Len() && !w.full(); i++ {
		if i > 0 {
			w.b.WriteByte(',')
		}
		w.value(v.Index(i))
	}
	w.b.WriteByte(']')
}

func (w *internalWriter) object(v reflect.Value) {
	members := make(map[string]reflect.Value, v.Len())
	for name, member := range v.Seq2() {
		members[name.String()] = member
	}
	w.b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		w.member(i > 0, name, members[name])
	}
	w.b.WriteByte('}')
}

func (w *internalWriter) fields(v reflect.Value) {
	switch part := v.Interface().(type) {
	case apiextensionsv1.JSON:
		if len(part.Raw) > maxShown {
			w.long = true
			return
		}
		value, err := decoded(part)
		if err != nil {
			value = string(part.Raw)
		}
		w.json(value)
		return
	case props:
		w.schema(v)
		return
	}
	w.b.WriteByte('{')
	for i := range v.NumField() {
		w.member(i > 0, v.Type().Field(i).Name, v.Field(i))
	}
	w.b.WriteByte('}')
}

// schema writes a schema. As in the internal type, nullable comes after the type.
func (w *internalWriter) schema(v reflect.Value) {
	w.b.WriteByte('{')
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Name; name {
		case "Nullable":
		case "Type":
			w.member(true, name, v.Field(i))
			w.member(true, "Nullable", v.FieldByName("Nullable"))
		default:
			w.member(i > 0, name, v.Field(i))
		}
	}
	w.b.WriteByte('}')
}

func (w *internalWriter) member(next bool, name string, v reflect.Value) {
	if next {
		w.b.WriteByte(',')
	}
	w.json(name)
	w.b.WriteByte(':')
	w.value(v)
}
