package definition

import (
	"fmt"
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/regexsize"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// These are the bounds of a definition. kube-apiserver has none of them. A definition within the bounds is validated, compiled
// and served in about a second at most, however hostile it is. In brackets is the maximum among the definitions of about sixty
// well-known projects. The bounds hold for all versions together, and equal parts of versions count once. The same is true of
// [rules.MaxRules], [rules.MaxRule], [rules.MaxRuleText] and [structural.MaxPatternSize].
const (
	maxVersions    = 100      // [4] each is in discovery, with all names
	maxNames       = 100      // [4] short names; also categories
	maxReviews     = 100      // [2] versions of ConversionReview
	maxWebhookPath = 2 << 10  // bytes; each wrong part of a path is an error that shows the whole path
	maxColumns     = 100      // [16] per version; each is evaluated for each object of a table
	maxListMapKeys = 64       // [3]
	maxPaths       = 16 << 20 // [1 MiB] bytes of the paths of all schemas, which errors show: long names around many fields
)

// boundErrors returns the errors of a definition that is out of bounds.
func boundErrors(spec *apiextensionsv1.CustomResourceDefinitionSpec) field.ErrorList {
	path := field.NewPath("spec")
	names := path.Child("names")
	b := &bounds{}
	b.many(path.Child("versions"), len(spec.Versions), maxVersions)
	b.many(names.Child("shortNames"), len(spec.Names.ShortNames), maxNames)
	b.many(names.Child("categories"), len(spec.Names.Categories), maxNames)
	b.conversion(path.Child("conversion"), spec.Conversion)
	if len(b.errs) > 0 { // the checks below visit all versions
		return b.errs
	}
	l := layoutOf(spec)
	top := l.top(spec)
	b.many(path.Child("additionalPrinterColumns"), len(top.AdditionalPrinterColumns), maxColumns)
	for i, v := range l.versionsIn(spec) {
		b.many(path.Child("versions").Index(i).Child("additionalPrinterColumns"), len(v.AdditionalPrinterColumns), maxColumns)
	}
	for _, schema := range schemasOf(spec, path) {
		b.schema(schema.path, schema.props, len(schema.path.String()), 0)
	}
	return b.errs
}

// bounds checks schemas against the bounds. It stops after the first error.
type bounds struct {
	errs field.ErrorList

	count, ruleText int // number of rules, and bytes of their text
	patterns        int // number of instructions
	paths           int // bytes
}

func (b *bounds) many(path *field.Path, n, most int) {
	if n > most {
		b.errs = append(b.errs, field.TooMany(path, n, most))
	}
}

func (b *bounds) long(path *field.Path, n, most int) {
	if n > most {
		b.errs = append(b.errs, field.TooLong(path, "", most))
	}
}

func (b *bounds) conversion(path *field.Path, conversion *apiextensionsv1.CustomResourceConversion) {
	if conversion == nil || conversion.Webhook == nil {
		return
	}
	b.many(path.Child("conversionReviewVersions"), len(conversion.Webhook.ConversionReviewVersions), maxReviews)
	client := conversion.Webhook.ClientConfig
	if client == nil {
		return
	}
	path = path.Child("webhookClientConfig")
	if client.URL != nil {
		b.long(path.Child("url"), len(*client.URL), maxWebhookPath)
	}
	if client.Service != nil && client.Service.Path != nil {
		b.long(path.Child("service", "path"), len(*client.Service.Path), maxWebhookPath)
	}
}

// schema counts a schema and those inside it. length is the length of path as text.
func (b *bounds) schema(path *field.Path, schema *props, length, depth int) {
	if schema == nil || len(b.errs) > 0 || depth > structural.MaxDepth { // too deep schemas are refused elsewhere
		return
	}
	b.own(path, schema, length)
	depth++
	one := func(word string, inside *props) { b.schema(path.Child(word), inside, length+1+len(word), depth) }
	listed := func(word string, inside []props) {
		for i := range inside {
			b.schema(path.Child(word).Index(i), &inside[i], length+len(word)+6, depth)
		}
	}
	named := func(word string, inside map[string]props) {
		for _, name := range slices.Sorted(maps.Keys(inside)) {
			property := inside[name]
			b.schema(path.Child(word).Key(name), &property, length+len(word)+3+len(name), depth)
		}
	}
	if schema.Items != nil {
		one("items", schema.Items.Schema)
		listed("items", schema.Items.JSONSchemas)
	}
	listed("allOf", schema.AllOf)
	listed("anyOf", schema.AnyOf)
	listed("oneOf", schema.OneOf)
	one("not", schema.Not)
	named("properties", schema.Properties)
	if schema.AdditionalProperties != nil {
		one("additionalProperties", schema.AdditionalProperties.Schema)
	}
	named("patternProperties", schema.PatternProperties)
	named("definitions", schema.Definitions)
	if schema.AdditionalItems != nil {
		one("additionalItems", schema.AdditionalItems.Schema)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Dependencies)) {
		b.schema(path.Child("dependencies").Key(name), schema.Dependencies[name].Schema, length+len(name)+15, depth)
	}
}

// own counts the parts of a schema without those inside it.
func (b *bounds) own(path *field.Path, schema *props, length int) {
	if b.paths += length; b.paths > maxPaths {
		b.errs = append(b.errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the paths of all fields may not be more than %d bytes together", maxPaths)))
		return
	}
	if schema.Pattern != "" {
		if b.patterns += regexsize.Of(schema.Pattern); b.patterns > structural.MaxPatternSize {
			b.errs = append(b.errs, field.Invalid(path.Child("pattern"), field.OmitValueType{},
				fmt.Sprintf("the regular expressions of all patterns may have at most %d instructions together", structural.MaxPatternSize)))
		}
	}
	b.many(path.Child("x-kubernetes-list-map-keys"), len(schema.XListMapKeys), maxListMapKeys)
	if len(schema.XValidations) > 0 {
		b.rulesOf(path.Child("x-kubernetes-validations"), schema.XValidations)
	}
}

func (b *bounds) rulesOf(path *field.Path, all apiextensionsv1.ValidationRules) {
	if b.count += len(all); b.count > rules.MaxRules {
		b.errs = append(b.errs, field.TooMany(path, b.count, rules.MaxRules))
		return
	}
	for i := range all {
		for word, text := range map[string]string{"rule": all[i].Rule, "messageExpression": all[i].MessageExpression} {
			b.long(path.Index(i).Child(word), len(text), rules.MaxRule)
		}
		b.ruleText += rules.TextOf(&all[i])
		if b.ruleText > rules.MaxRuleText && len(b.errs) == 0 {
			b.errs = append(b.errs, field.Invalid(path.Index(i), field.OmitValueType{}, fmt.Sprintf("all rules may not be more than %d bytes together, where each expression counts 60 bytes more", rules.MaxRuleText)))
		}
		if len(b.errs) > 0 {
			return
		}
	}
}
