package written

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// RootErrors returns an error if the root has a keyword that is not allowed with a status subresource.
func RootErrors(path *field.Path, props *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	allowed := []string{
		"Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum", "MaxLength",
		"MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items", "Properties",
		"ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
	}
	root := reflect.ValueOf(*props)
	for i := range root.NumField() {
		name := root.Type().Field(i).Name
		switch {
		case root.Field(i).IsZero():
		case name == "Type" && props.Type != word.Object:
			return field.ErrorList{field.Invalid(path.Child("type"), props.Type,
				`only "object" is allowed as the type at the root of the schema if the status subresource is enabled`)}
		case !slices.Contains(allowed, name):
			return field.ErrorList{field.Invalid(path, *props,
				fmt.Sprintf("only %v fields are allowed at the root of the schema if the status subresource is enabled", allowed))}
		}
	}
	return nil
}

// isType reports whether OpenAPI has the type.
func isType(name string) bool {
	return slices.Contains(typeNames(), name)
}

func typeNames() []string {
	return strings.Fields("array boolean integer number object string")
}

// Leniency has the faults of keywords that are accepted, because earlier schemas had them.
type Leniency struct {
	NonAtomicSets bool // lists of type set with objects or lists that are not atomic
	LooseKeys     bool // list keys that are nullable, or optional without a default; nullable elements of sets and maps
	UnknownTypes  bool // types that OpenAPI does not have
}

// Add adds the faults of a schema. root may be nil.
func (l *Leniency) Add(root *apiextensionsv1.JSONSchemaProps) {
	for props := range nodes(root) {
		l.NonAtomicSets = l.NonAtomicSets || nonAtomicSet(nil, props) != nil
		l.LooseKeys = l.LooseKeys || len(looseKeys(nil, props)) > 0
		l.UnknownTypes = l.UnknownTypes || props.Type != "" && !isType(props.Type)
	}
}

// KeywordErrors checks the keywords of a schema and of the schemas inside it. If faulty is not nil, the paths of schemas with
// errors in them or below are added to it.
func KeywordErrors(path *field.Path, props *apiextensionsv1.JSONSchemaProps, tolerance Leniency, faulty map[string]bool) field.ErrorList {
	c := keywords{tolerance: tolerance, defaults: true, unsupported: new(int), faulty: faulty}
	return c.check(path, props, true)
}

// keywords checks the keywords of schemas.
type keywords struct {
	tolerance  Leniency
	defaults   bool   // defaults are allowed
	why        string // why defaults are not allowed
	insideMeta bool   // the schema is inside apiVersion, kind or metadata

	unsupported *int            // number of schemas so far that cannot be compiled
	faulty      map[string]bool // gets the paths of schemas with errors in them or below, unless it is nil
}

func (c keywords) withoutDefaults(why string) keywords {
	c.defaults, c.why = false, why
	return c
}

// check checks a schema and the schemas inside it.
func (c keywords) check(path *field.Path, props *apiextensionsv1.JSONSchemaProps, root bool) field.ErrorList {
	if props == nil {
		return nil
	}
	before := *c.unsupported
	if !compiles(props) {
		*c.unsupported++
	}
	errs := c.forbidden(path, props)
	errs = append(errs, c.members(path, props, root)...)
	errs = append(errs, c.check(path.Child("not"), props.Not, false)...)
	errs = append(errs, c.each(path.Child("allOf"), props.AllOf)...)
	errs = append(errs, c.each(path.Child("oneOf"), props.OneOf)...)
	errs = append(errs, c.each(path.Child("anyOf"), props.AnyOf)...)
	errs = append(errs, c.named(path.Child("definitions"), props.Definitions)...)
	if props.Items != nil {
		errs = append(errs, c.check(path.Child("items"), props.Items.Schema, false)...)
		errs = append(errs, c.each(path.Child("items"), props.Items.JSONSchemas)...)
	}
	for _, name := range slices.Sorted(maps.Keys(props.Dependencies)) {
		errs = append(errs, c.check(path.Child("dependencies").Key(name), props.Dependencies[name].Schema, false)...)
	}
	errs = append(errs, c.extensions(path, props)...)
	errs = append(errs, ruleErrors(path, props, *c.unsupported > before)...)
	if len(errs) > 0 && c.faulty != nil {
		c.faulty[path.String()] = true
	}
	return errs
}

// compiles reports whether a schema compiles if the schemas inside it do.
func compiles(props *apiextensionsv1.JSONSchemaProps) bool {
	if props.XPreserveUnknownFields != nil && !*props.XPreserveUnknownFields || props.Items != nil && len(props.Items.JSONSchemas) > 0 {
		return false
	}
	return Unsupported(props) == nil
}

func (c keywords) each(path *field.Path, all []apiextensionsv1.JSONSchemaProps) field.ErrorList {
	var errs field.ErrorList
	for i := range all {
		errs = append(errs, c.check(path.Index(i), &all[i], false)...)
	}
	return errs
}

func (c keywords) named(path *field.Path, all map[string]apiextensionsv1.JSONSchemaProps) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(all)) {
		props := all[name]
		errs = append(errs, c.check(path.Key(name), &props, false)...)
	}
	return errs
}

// forbidden returns errors for keywords that are never allowed, or are not allowed at this position.
func (c keywords) forbidden(path *field.Path, props *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	var errs field.ErrorList
	if props.Type != "" && !isType(props.Type) && !c.tolerance.UnknownTypes {
		errs = append(errs, field.NotSupported(path.Child("type"), props.Type, typeNames()))
	}
	value, err := Decoded(props.Default)
	if (value != nil || err != nil) && !c.defaults {
		errs = append(errs, field.Forbidden(path.Child("default"), strings.TrimSpace("must not be set "+c.why)))
	}
	for _, keyword := range []struct {
		found bool
		name  string
	}{
		{props.ID != "", "id"},
		{props.AdditionalItems != nil, "additionalItems"},
		{len(props.PatternProperties) > 0, "patternProperties"},
		{len(props.Definitions) > 0, "definitions"},
		{props.Dependencies != nil, "dependencies"},
		{props.Ref != nil, "$ref"},
	} {
		if keyword.found {
			errs = append(errs, field.Forbidden(path.Child(keyword.name), keyword.name+" is not supported"))
		}
	}
	if props.Type == word.Null {
		errs = append(errs, field.Forbidden(path.Child("type"), "type cannot be set to null, use nullable as an alternative"))
	}
	if props.Items != nil && len(props.Items.JSONSchemas) > 0 {
		errs = append(errs, field.Forbidden(path.Child("items"), "items must be a schema object and not an array"))
	}
	if c.insideMeta && props.XEmbeddedResource {
		errs = append(errs, field.Forbidden(path.Child("x-kubernetes-embedded-resource"), "must not be used inside of resource meta"))
	}
	if props.UniqueItems {
		errs = append(errs, field.Forbidden(path.Child("uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"))
	}
	return errs
}

// members checks the schemas of an object's members.
func (c keywords) members(path *field.Path, props *apiextensionsv1.JSONSchemaProps, root bool) field.ErrorList {
	var errs field.ErrorList
	if others := props.AdditionalProperties; others != nil {
		if len(props.Properties) > 0 && (!others.Allows || others.Schema != nil) {
			errs = append(errs, field.Forbidden(path.Child("additionalProperties"), "additionalProperties and properties are mutual exclusive"))
		}
		inside := c
		if c.insideMeta {
			inside = c.withoutDefaults("inside additionalProperties applying to object metadata")
		}
		errs = append(errs, inside.check(path.Child("additionalProperties"), others.Schema, false)...)
	}
	for _, name := range slices.Sorted(maps.Keys(props.Properties)) {
		property, inside := props.Properties[name], c
		if (root || props.XEmbeddedResource) && word.IsMeta(name) {
			inside.insideMeta = true
			if root {
				inside = inside.withoutDefaults("in top-level " + name)
			}
		}
		errs = append(errs, inside.check(path.Child("properties").Key(name), &property, false)...)
	}
	return errs
}
