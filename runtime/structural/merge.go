package structural

import (
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// MergeSchema returns the structure of the schema of a whole object as OpenAPI: types, members, list types, keys, map types,
// defaults and preserved unknown fields, without conditions on values. Server-side apply needs this part.
//
// The object and embedded resources get apiVersion, kind and metadata. meta is the schema of metadata, usually a reference to a
// definition of an ObjectMeta. s may be nil.
//
// The server of the kind makes a model of the result, as package patch does for a Go type. The result is one definition; the
// definition of ObjectMeta is another, which runtime/schema has. schemaconv.ToSchemaFromOpenAPI converts both to types, and a
// typed.Parser of structured-merge-diff makes the ParseableType by which objects are merged. The model should be made when it is
// first needed, and dropped when the definition changes.
func (s *Schema) MergeSchema(meta spec.Schema) *spec.Schema {
	if s == nil {
		s = &Schema{Type: word.Object}
	}
	schema := s.merge(meta)
	addMeta(schema, meta)
	return schema
}

func (s *Schema) merge(meta spec.Schema) *spec.Schema {
	if s == nil {
		return nil
	}
	schema := &spec.Schema{}
	if s.Type != "" && !s.IntOrString { // a schema without a type merges any value
		schema.Type = spec.StringOrArray{s.Type}
	}
	schema.Nullable = s.Nullable
	if s.Default != nil {
		schema.Default = apiruntime.DeepCopyJSONValue(s.Default)
	}
	if s.Values != nil {
		schema.Format = s.Values.Format
	}
	if s.Items != nil {
		schema.Items = &spec.SchemaOrArray{Schema: s.Items.merge(meta)}
	}
	if s.Others != OthersUnspecified {
		schema.AdditionalProperties = &spec.SchemaOrBool{Allows: s.Others != OthersForbidden, Schema: s.Additional.merge(meta)}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		schema.SetProperty(name, *s.Properties[name].merge(meta))
	}
	s.mergeExtensions(schema)
	if s.Embedded {
		addMeta(schema, meta)
	}
	return schema
}

func (s *Schema) mergeExtensions(schema *spec.Schema) {
	if s.PreserveUnknown {
		schema.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	}
	if s.ListType != "" {
		schema.AddExtension("x-kubernetes-list-type", s.ListType)
	}
	if len(s.ListMapKeys) > 0 {
		keys := make([]any, len(s.ListMapKeys))
		for i, key := range s.ListMapKeys {
			keys[i] = key
		}
		schema.AddExtension("x-kubernetes-list-map-keys", keys)
	}
	if s.MapType != "" {
		schema.AddExtension("x-kubernetes-map-type", s.MapType)
	}
}

// addMeta adds the fields that every Kubernetes object has.
func addMeta(schema *spec.Schema, meta spec.Schema) {
	schema.SetProperty(word.APIVersion, *spec.StringProperty())
	schema.SetProperty(word.Kind, *spec.StringProperty())
	schema.SetProperty(word.Metadata, meta)
}
