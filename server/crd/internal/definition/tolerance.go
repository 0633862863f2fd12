package definition

import (
	"slices"

	"github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// tolerance says which rules are not enforced for a definition, because it violated them before they were made, or because they
// do not apply yet.
type tolerance struct {
	schemas        structural.Tolerance
	noSchemas      bool // versions may have no schema
	unknownReviews bool // a webhook may support no known version of ConversionReview
	invalidBundle  bool // the CABundle of a webhook may be invalid

	expressions rules.Expressions // expressions that may use features which are new in this release
	unchanged   map[string]bool   // versions with an unchanged schema: each of their rules may be as expensive as it is

	manyFields   bool            // there may be too many selectable fields that all versions share
	manyFieldsIn map[string]bool // the same for the fields of single versions, by name
}

// toleranceOf returns what is tolerated in an update of old to crd.
func toleranceOf(crd, old *apiextensionsv1.CustomResourceDefinition) tolerance {
	t := tolerance{invalidBundle: !IsTrue(old, apiextensionsv1.Established)}
	var schemas []*props
	for i := range old.Spec.Versions {
		schema := SchemaOf(&old.Spec.Versions[i])
		t.noSchemas = t.noSchemas || schema == nil
		schemas = append(schemas, schema)
	}
	t.schemas = structural.Tolerated(schemas...)
	t.schemas.NonStructural = crd.Spec.PreserveUnknownFields && slices.ContainsFunc(schemas, isNonStructural) && !hasSchemaWith(&crd.Spec, needsStructure)
	if conversion := old.Spec.Conversion; conversion != nil && conversion.Webhook != nil {
		reviews := conversion.Webhook.ConversionReviewVersions
		t.unknownReviews = len(reviews) > 0 && !knowsReview(reviews)
	}
	t.invalidBundle = t.invalidBundle || hasInvalidBundle(old)
	t.keepFields(crd, old)
	if hasSchemaWith(&crd.Spec, hasRules) {
		t.expressions = rules.ExpressionsOf(schemas...)
		t.unchanged = unchangedSchemas(crd, old)
	}
	return t
}

// unchangedSchemas returns the names of the versions whose schema is unchanged. Of versions with the same name the first counts.
func unchangedSchemas(crd, old *apiextensionsv1.CustomResourceDefinition) map[string]bool {
	unchanged, same := map[string]bool{}, sameMeaning()
	for i := range crd.Spec.Versions {
		name := crd.Spec.Versions[i].Name
		if was := Version(old, name); was != nil && same.DeepEqual(Version(crd, name).Schema, was.Schema) {
			unchanged[name] = true
		}
	}
	return unchanged
}

// keepFields tolerates too many selectable fields if the old definition had too many and they are unchanged.
func (t *tolerance) keepFields(crd, old *apiextensionsv1.CustomResourceDefinition) {
	l, was, same := layoutOf(&crd.Spec), layoutOf(&old.Spec), sameMeaning()
	top, topWas := l.top(&crd.Spec), was.top(&old.Spec)
	t.manyFields = len(topWas.SelectableFields) > maxSelectableFields && same.DeepEqual(top.SelectableFields, topWas.SelectableFields)
	before := map[string][]apiextensionsv1.SelectableField{}
	for _, v := range was.versionsIn(&old.Spec) {
		before[v.Name] = v.SelectableFields
	}
	for _, v := range l.versionsIn(&crd.Spec) {
		if fields := before[v.Name]; len(fields) > maxSelectableFields && same.DeepEqual(v.SelectableFields, fields) {
			if t.manyFieldsIn == nil {
				t.manyFieldsIn = map[string]bool{}
			}
			t.manyFieldsIn[v.Name] = true
		}
	}
}

// hasSchemaWith reports whether is returns true for a schema of a spec or one inside it.
func hasSchemaWith(spec *apiextensionsv1.CustomResourceDefinitionSpec, is func(*props) bool) bool {
	found := false
	for i := range spec.Versions {
		eachNode(nil, SchemaOf(&spec.Versions[i]), func(_ *field.Path, node *props) { found = found || is(node) })
	}
	return found
}

func hasDefault(schema *props) bool { return schema.Default != nil }

func hasRules(schema *props) bool { return len(schema.XValidations) > 0 }

// needsStructure reports whether a schema has a feature that is allowed only in structural schemas.
func needsStructure(schema *props) bool {
	return hasDefault(schema) || schema.XEmbeddedResource || schema.XPreserveUnknownFields != nil || schema.XIntOrString ||
		len(schema.XListMapKeys) > 0 || schema.XListType != nil || hasRules(schema)
}

func isNonStructural(schema *props) bool {
	_, err := structural.Compile(schema)
	return err != nil || len(structural.NonStructural(nil, schema)) > 0
}
