package definition

import (
	"slices"

	"github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// tolerance is what is not held against a definition, because it was so before a rule was made, or because the rule does not
// hold yet.
type tolerance struct {
	schemas        structural.Tolerance
	noSchemas      bool // versions without a schema
	unknownReviews bool // a webhook knows no known version of ConversionReview
	invalidBundle  bool // the certificates of a webhook are none

	expressions rules.Expressions // may use what is new in this release
	unchanged   map[string]bool   // versions with the schema that they had: their rules may cost what they do, each

	manyFields   bool            // too many selectable fields that all versions have
	manyFieldsIn map[string]bool // of versions, by name
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

// unchangedSchemas tells the versions that have the schema which they had, by their names. Of versions with one name the first
// counts.
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

// keepFields tolerates more selectable fields than are allowed where there were that many, and they stay the same.
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

// hasSchemaWith says that a schema of a spec, or one inside it, is as it is asked for.
func hasSchemaWith(spec *apiextensionsv1.CustomResourceDefinitionSpec, is func(*props) bool) bool {
	found := false
	for i := range spec.Versions {
		eachNode(nil, SchemaOf(&spec.Versions[i]), func(_ *field.Path, node *props) { found = found || is(node) })
	}
	return found
}

func hasDefault(schema *props) bool { return schema.Default != nil }

func hasRules(schema *props) bool { return len(schema.XValidations) > 0 }

// needsStructure says that a schema has what makes sense only in structural schemas.
func needsStructure(schema *props) bool {
	return hasDefault(schema) || schema.XEmbeddedResource || schema.XPreserveUnknownFields != nil || schema.XIntOrString ||
		len(schema.XListMapKeys) > 0 || schema.XListType != nil || hasRules(schema)
}

func isNonStructural(schema *props) bool {
	_, err := structural.Compile(schema)
	return err != nil || len(structural.NonStructural(nil, schema)) > 0
}
