package definition

import (
	"fmt"

	"github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// missingSchemas returns an error for each version that needs a schema and has none. path is that of the versions.
func (j *judge) missingSchemas(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range j.spec.Versions {
		v := &j.spec.Versions[i]
		at := path.Index(i).Child("schema", "openAPIV3Schema")
		switch {
		case SchemaOf(v) != nil:
		case !j.noSchemas:
			errs = append(errs, field.Required(at, ""))
		case v.Served && !j.spec.PreserveUnknownFields:
			errs = append(errs, field.Required(at, "because otherwise all fields are pruned"))
		}
	}
	return errs
}

// schemaErrors validates the schema of v, which may be nil, and its rules. path is the path of the parent of the schema. The
// costs of rules are not checked if the version called name had this schema before. For a schema that all versions share, name is
// that of the first version.
func (j *judge) schemaErrors(path *field.Path, v *apiextensionsv1.CustomResourceDefinitionVersion, name string, status bool) field.ErrorList {
	schema, at := SchemaOf(v), path.Child("openAPIV3Schema")
	options := structural.Options{StatusSubresource: status, Tolerance: j.schemas, Effort: j.effort}
	errs := j.compiler.Check(j.ctx, at, schema, rules.Options{Options: options, Stored: j.expressions, Unchanged: j.unchanged[name]})
	for _, err := range errs {
		switch err.BadValue.(type) {
		case apiextensionsv1.JSONSchemaProps, *apiextensionsv1.JSONSchemaPropsOrArray, apiextensionsv1.ValidationRule:
			err.BadValue = internalForm(err.BadValue)
		}
	}
	return errs
}

// firstName returns the name of the first version, or "".
func (j *judge) firstName() string {
	if len(j.versions) == 0 {
		return ""
	}
	return j.versions[0].Name
}

// maxSelectableFields is the maximum number of selectable fields of one version.
const maxSelectableFields = 8

// topSelectableErrors validates the selectable fields that all versions share against the schema that all versions share. It is
// an error if there is no such schema. path is that of the spec.
func (j *judge) topSelectableErrors(path *field.Path) field.ErrorList {
	at := path.Child("selectableFields")
	switch {
	case len(j.top.SelectableFields) == 0:
		return nil
	case j.top.Schema == nil:
		return field.ErrorList{field.Invalid(at, "", "may only be set when validations.schema is included")}
	}
	return j.selectableErrors(at, path.Child("schema", "openAPIV3Schema"), j.top.SelectableFields, SchemaOf(&j.top), j.manyFields)
}

// versionSelectableErrors validates the selectable fields of a version at path in the same way.
func (j *judge) versionSelectableErrors(path *field.Path, v *apiextensionsv1.CustomResourceDefinitionVersion) field.ErrorList {
	at := path.Child("selectableFields")
	switch {
	case len(v.SelectableFields) == 0:
		return nil // sic: the text means that it must be included
	case SchemaOf(v) == nil: // sic: the schema must be in the version too
		return field.ErrorList{field.Invalid(at, "", "may only be set when `version.schema.openAPIV3Schema` is not included")}
	}
	return j.selectableErrors(at, path.Child("schema", "openAPIV3Schema"), v.SelectableFields, SchemaOf(v), j.manyFieldsIn[v.Name])
}

// selectableErrors validates selectable fields against a schema, which is at schemaPath. With many, any number of fields is
// allowed.
func (j *judge) selectableErrors(path, schemaPath *field.Path, selectable []apiextensionsv1.SelectableField, schema *props, many bool) field.ErrorList {
	var errs field.ErrorList
	compiled, err := structural.Compile(schema)
	if err != nil {
		return field.ErrorList{field.Invalid(schemaPath, "", err.Error())}
	}
	seen := map[string]bool{}
	for i := range selectable {
		jsonPath, at := selectable[i].JSONPath, path.Index(i).Child("jsonPath")
		if jsonPath == "" {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		to, found, err := compiled.At(jsonPath, false)
		if err != nil {
			errs = append(errs, field.Invalid(at, jsonPath, fmt.Sprintf("is an invalid path: %v", err)))
			continue
		}
		if to.Root().String() == "metadata" {
			errs = append(errs, field.Invalid(at, jsonPath, "must not point to fields in metadata"))
		}
		if found == nil || found.Type != "string" && found.Type != "boolean" && found.Type != "integer" {
			errs = append(errs, field.Invalid(at, jsonPath,
				"must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."))
		}
		if seen[to.String()] {
			errs = append(errs, field.Duplicate(at, jsonPath))
		}
		seen[to.String()] = true
	}
	if len(seen) > maxSelectableFields && !many {
		errs = append(errs, field.TooMany(path, len(seen), maxSelectableFields))
	}
	return errs
}
