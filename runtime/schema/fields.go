package schema

import (
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
