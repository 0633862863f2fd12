package structural

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Warnings returns what is not wrong with a schema but worth telling its author: formats that mean nothing, each time they
// are used, and sets that server-side apply cannot merge. In an update, those that the old schema had too are not told.
func Warnings(props *apiextensionsv1.JSONSchemaProps) []string {
	var warnings, sets []string
	for node := range nodes(props) {
		if node.Format != "" && !formatKnown(node.Type, false, node.Format) {
			warnings = append(warnings, fmt.Sprintf("unrecognized format %q", node.Format))
		}
		items := itemsOf(node)
		if node.XListType == nil || *node.XListType != listSet || items == nil || items.Type != typeObject && items.Type != typeArray {
			continue
		}
		warning := fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", items.Type)
		if !slices.Contains(sets, warning) {
			sets = append(sets, warning)
		}
	}
	slices.Sort(sets)
	return append(warnings, sets...)
}

// children returns the schemas directly inside a schema, those of maps sorted.
func children(props *apiextensionsv1.JSONSchemaProps) iter.Seq[*apiextensionsv1.JSONSchemaProps] {
	return func(yield func(*apiextensionsv1.JSONSchemaProps) bool) {
		var all []*apiextensionsv1.JSONSchemaProps
		if props.Items != nil {
			all = append(all, props.Items.Schema)
			all = appendAll(all, props.Items.JSONSchemas)
		}
		all = appendAll(all, props.AllOf)
		all = appendAll(all, props.AnyOf)
		all = appendAll(all, props.OneOf)
		all = append(all, props.Not)
		all = appendMap(all, props.Properties)
		all = append(all, additionalOf(props))
		all = appendMap(all, props.PatternProperties)
		if props.AdditionalItems != nil {
			all = append(all, props.AdditionalItems.Schema)
		}
		all = appendMap(all, props.Definitions)
		for _, name := range slices.Sorted(maps.Keys(props.Dependencies)) {
			all = append(all, props.Dependencies[name].Schema)
		}
		for _, child := range all {
			if child != nil && !yield(child) {
				return
			}
		}
	}
}

func appendAll(all []*apiextensionsv1.JSONSchemaProps, more []apiextensionsv1.JSONSchemaProps) []*apiextensionsv1.JSONSchemaProps {
	for i := range more {
		all = append(all, &more[i])
	}
	return all
}

func appendMap(all []*apiextensionsv1.JSONSchemaProps, more map[string]apiextensionsv1.JSONSchemaProps) []*apiextensionsv1.JSONSchemaProps {
	for _, name := range slices.Sorted(maps.Keys(more)) {
		child := more[name]
		all = append(all, &child)
	}
	return all
}

// nodes returns a schema and all inside it, each before those inside it.
func nodes(props *apiextensionsv1.JSONSchemaProps) iter.Seq[*apiextensionsv1.JSONSchemaProps] {
	return func(yield func(*apiextensionsv1.JSONSchemaProps) bool) { walk(props, yield) }
}

func walk(props *apiextensionsv1.JSONSchemaProps, yield func(*apiextensionsv1.JSONSchemaProps) bool) bool {
	if props == nil {
		return true
	}
	if !yield(props) {
		return false
	}
	for child := range children(props) {
		if !walk(child, yield) {
			return false
		}
	}
	return true
}

// isType says that OpenAPI has the type.
func isType(name string) bool {
	return slices.Contains(typeNames(), name)
}

func typeNames() []string {
	return strings.Fields("array boolean integer number object string")
}

// keywords checks the keywords of schemas, one by one, wherever they are.
type keywords struct {
	tolerance  Tolerance
	defaults   bool   // are allowed
	why        string // they are not
	insideMeta bool   // the schema is one of apiVersion, kind or metadata

	unsupported *int            // how many schemas were met that cannot be compiled
	faulty      map[string]bool // gets the paths of schemas with errors in them or below, unless it is nil
}

func (c keywords) withoutDefaults(why string) keywords {
	c.defaults, c.why = false, why
	return c
}

// check judges a schema and those inside.
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

// compiles says that a schema can be compiled if those inside can.
func compiles(props *apiextensionsv1.JSONSchemaProps) bool {
	if props.XPreserveUnknownFields != nil && !*props.XPreserveUnknownFields || props.Items != nil && len(props.Items.JSONSchemas) > 0 {
		return false
	}
	return unsupported(props) == nil
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

// forbidden finds the keywords that are never allowed, or not here.
func (c keywords) forbidden(path *field.Path, props *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	var errs field.ErrorList
	if props.Type != "" && !isType(props.Type) && !c.tolerance.UnknownTypes {
		errs = append(errs, field.NotSupported(path.Child("type"), props.Type, typeNames()))
	}
	value, err := decoded(props.Default)
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
	if props.Type == typeNull {
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

// members judges the schemas of an object's members.
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
		if (root || props.XEmbeddedResource) && isMeta(name) {
			inside.insideMeta = true
			if root {
				inside = inside.withoutDefaults("in top-level " + name)
			}
		}
		errs = append(errs, inside.check(path.Child("properties").Key(name), &property, false)...)
	}
	return errs
}
