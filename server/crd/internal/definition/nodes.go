package definition

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type props = apiextensionsv1.JSONSchemaProps

// schemaAt is a schema of a definition and its path in the errors of kube-apiserver.
type schemaAt struct {
	path  *field.Path
	props *props
}

// schemasOf returns the schemas of a spec, at path. It returns one schema if that of all versions is equal.
func schemasOf(spec *apiextensionsv1.CustomResourceDefinitionSpec, path *field.Path) []schemaAt {
	l := layoutOf(spec)
	top := l.top(spec)
	if schema := SchemaOf(&top); schema != nil {
		return []schemaAt{{path.Child("validation", "openAPIV3Schema"), schema}}
	}
	var all []schemaAt
	for i := range spec.Versions {
		if schema := SchemaOf(&spec.Versions[i]); schema != nil {
			all = append(all, schemaAt{path.Child("versions").Index(i).Child("schema", "openAPIV3Schema"), schema})
		}
	}
	return all
}

// eachNode calls visit for a schema and all schemas inside it, with their paths. An outer schema comes before its inner ones, and
// those of maps are sorted.
func eachNode(path *field.Path, schema *props, visit func(*field.Path, *props)) {
	if schema == nil {
		return
	}
	visit(path, schema)
	if schema.Items != nil {
		eachNode(path.Child("items"), schema.Items.Schema, visit)
		eachListed(path.Child("items"), schema.Items.JSONSchemas, visit)
	}
	eachListed(path.Child("allOf"), schema.AllOf, visit)
	eachListed(path.Child("anyOf"), schema.AnyOf, visit)
	eachListed(path.Child("oneOf"), schema.OneOf, visit)
	eachNode(path.Child("not"), schema.Not, visit)
	eachNamed(path.Child("properties"), schema.Properties, visit)
	if schema.AdditionalProperties != nil {
		eachNode(path.Child("additionalProperties"), schema.AdditionalProperties.Schema, visit)
	}
	eachNamed(path.Child("patternProperties"), schema.PatternProperties, visit)
	eachNamed(path.Child("definitions"), schema.Definitions, visit)
	if schema.AdditionalItems != nil {
		eachNode(path.Child("additionalItems"), schema.AdditionalItems.Schema, visit)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Dependencies)) {
		eachNode(path.Child("dependencies").Key(name), schema.Dependencies[name].Schema, visit)
	}
}

func eachListed(path *field.Path, schemas []props, visit func(*field.Path, *props)) {
	for i := range schemas {
		eachNode(path.Index(i), &schemas[i], visit)
	}
}

func eachNamed(path *field.Path, schemas map[string]props, visit func(*field.Path, *props)) {
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		schema := schemas[name]
		eachNode(path.Key(name), &schema, visit)
	}
}
