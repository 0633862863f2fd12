package schema

import (
	"maps"
	"reflect"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
)

// jsonField is a field as encoding/json sees it.
type jsonField struct {
	reflect.StructField
	name      string // in JSON
	omitted   bool   // omitempty or omitzero
	asString  bool   // the option ",string"
	declaring reflect.Type
	docs      *comment // of the declaring type
}

// jsonFields returns the fields that a struct has in JSON. docs is the comment of t, which may have no name.
func (r *reflector) jsonFields(t reflect.Type, docs *comment) []jsonField {
	var out []jsonField
	for _, f := range jsonfield.Of(t, nil) {
		of := docs
		if len(f.At) > 1 {
			of = r.comment(f.Declaring)
		}
		out = append(out, jsonField{
			StructField: f.Go, name: f.Name, omitted: f.OmitEmpty || f.OmitZero, asString: f.AsString, declaring: f.Declaring, docs: of,
		})
	}
	return out
}

// comment returns the comment of a type's declaration. That of a Kubernetes type is found by its package path, so that the
// comment of a program's type with the same name is never used.
func (r *reflector) comment(t reflect.Type) *comment {
	if c, ok := r.kubernetes.ofType(t); ok {
		return c
	}
	return r.docs.ofType(t)
}

// swaggerDoc returns the result of a type's SwaggerDoc method, or nil if it has none.
func (r *reflector) swaggerDoc(t reflect.Type) map[string]string {
	text, ok := r.swagger[t]
	if !ok {
		text = ownSwaggerDoc(t)
		r.swagger[t] = text
	}
	return text
}

func ownSwaggerDoc(t reflect.Type) map[string]string {
	type documented interface{ SwaggerDoc() map[string]string }
	v, ok := methods[documented](t)
	if !ok {
		return nil
	}
	text := v.SwaggerDoc()
	if promoted(t, func(f reflect.Type) bool {
		inner, ok := methods[documented](f)
		return ok && maps.Equal(inner.SwaggerDoc(), text)
	}) {
		return nil
	}
	return text
}
