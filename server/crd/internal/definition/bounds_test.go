package definition_test

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// withSpec gives a definition a schema with fields in its spec.
func withSpec(c *crd, fields map[string]apiextensionsv1.JSONSchemaProps) {
	c.Spec.Versions[0].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: fields}},
	}}
}

// TestBounds checks definitions at each bound and above it. Above a bound, that must be the only error, whatever else is wrong.
func TestBounds(t *testing.T) {
	many := func(n int, prefix string) []string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprint(prefix, i)
		}
		return names
	}
	rules := func(n, size int) apiextensionsv1.ValidationRules {
		all := make(apiextensionsv1.ValidationRules, n)
		for i := range all {
			all[i].Rule = "true" + strings.Repeat(" ", size-len("true"))
		}
		return all
	}
	ruled := func(all ...apiextensionsv1.ValidationRules) func(*crd, int) {
		return func(c *crd, more int) {
			fields := map[string]apiextensionsv1.JSONSchemaProps{}
			for i := range all {
				fields[fmt.Sprint("f", i)] = apiextensionsv1.JSONSchemaProps{Type: "string", XValidations: all[i][:len(all[i])+more-1]}
			}
			withSpec(c, fields)
		}
	}
	const schema = `spec.validation.openAPIV3Schema.properties[spec].properties`
	tests := map[string]struct {
		change func(c *crd, more int) // more is 0 at the bound, and 1 above it
		want   string
	}{
		"versions": {func(c *crd, more int) {
			for i := range 99 + more {
				v := c.Spec.Versions[0]
				v.Name, v.Storage = fmt.Sprint("v2beta", i), false
				c.Spec.Versions = append(c.Spec.Versions, v)
			}
		}, `spec.versions: Too many: 101: must have at most 100 items`},
		"short names": {func(c *crd, more int) { c.Spec.Names.ShortNames = many(100+more, "s") },
			`spec.names.shortNames: Too many: 101: must have at most 100 items`},
		"categories": {func(c *crd, more int) { c.Spec.Names.Categories = many(100+more, "s") },
			`spec.names.categories: Too many: 101: must have at most 100 items`},
		"columns": {func(c *crd, more int) {
			for i := range 100 + more {
				c.Spec.Versions[0].AdditionalPrinterColumns = append(c.Spec.Versions[0].AdditionalPrinterColumns,
					apiextensionsv1.CustomResourceColumnDefinition{Name: fmt.Sprint(i), Type: "string", JSONPath: ".a"})
			}
		}, `spec.additionalPrinterColumns: Too many: 101: must have at most 100 items`},
		"keys": {func(c *crd, more int) {
			list, keys, fields := "map", many(64+more, "k"), map[string]apiextensionsv1.JSONSchemaProps{}
			for _, key := range keys {
				fields[key] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			}
			withSpec(c, map[string]apiextensionsv1.JSONSchemaProps{"l": {Type: "array", XListType: &list, XListMapKeys: keys,
				Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields, Required: keys}}}})
		}, schema + `[l].x-kubernetes-list-map-keys: Too many: 65: must have at most 64 items`},
		"rules": {ruled(rules(500, 4), rules(501, 4)), schema + `[f1].x-kubernetes-validations: Too many: 1001: must have at most 1000 items`},
		"a rule": {func(c *crd, more int) {
			withSpec(c, map[string]apiextensionsv1.JSONSchemaProps{"f": {Type: "string", XValidations: rules(1, 16<<10+more)}})
		}, schema + `[f].x-kubernetes-validations[0].rule: Too long: may not be more than 16384 bytes`},
		"text of rules": {func(c *crd, more int) {
			withSpec(c, map[string]apiextensionsv1.JSONSchemaProps{"f": {Type: "string", XValidations: rules(3+more, 16<<10)}})
		}, schema + `[f].x-kubernetes-validations[3]: Invalid value: all rules may not be more than 65536 bytes together, where each expression counts 60 bytes more`},
		"patterns": {func(c *crd, more int) {
			fields := map[string]apiextensionsv1.JSONSchemaProps{}
			for i := range 490 + 20*more {
				fields[fmt.Sprintf("f%03d", i)] = apiextensionsv1.JSONSchemaProps{Type: "string", Pattern: "x{1000}"}
			}
			withSpec(c, fields)
		}, schema + `[f500].pattern: Invalid value: the regular expressions of all patterns may have at most 500000 instructions together`},
		"paths": {func(c *crd, more int) {
			fields := map[string]apiextensionsv1.JSONSchemaProps{}
			for i := range 155 + 10*more {
				fields[fmt.Sprintf("f%03d", i)] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			}
			withSpec(c, map[string]apiextensionsv1.JSONSchemaProps{strings.Repeat("n", 100<<10): {Type: "object", Properties: fields}})
		}, `]: Invalid value: the paths of all fields may not be more than 16777216 bytes together`},
	}
	validator := validatorOf(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			most := parse(t, good)
			tt.change(most, 0)
			if errs := validator.Validate(t.Context(), most); len(errs) > 0 {
				t.Fatalf("as much as is allowed: %.300s", errs.ToAggregate())
			}
			over := parse(t, good)
			tt.change(over, 1)
			over.Spec.Scope = "nowhere"
			errs := validator.Validate(t.Context(), over)
			if len(errs) != 1 || !strings.HasSuffix(errs[0].Error(), tt.want) {
				t.Errorf("%.300s, want only %s", errs.ToAggregate(), tt.want)
			}
			changed := over.DeepCopy()
			changed.Labels = map[string]string{"a": "b"}
			if errs := validator.ValidateUpdate(t.Context(), changed, over); len(errs) > 0 {
				t.Errorf("one that somebody else has stored, with another label: %.300s", errs.ToAggregate())
			}
			changed.Spec.Names.Singular = "another"
			if errs := validator.ValidateUpdate(t.Context(), changed, over); len(errs) != 1 || !strings.HasSuffix(errs[0].Error(), tt.want) {
				t.Errorf("one that somebody else has stored, with another spec: %.300s, want %s", errs.ToAggregate(), tt.want)
			}
		})
	}
}

// TestBoundsOfWebhooks has a path whose parts are all wrong, each of which would be an error with the whole path.
func TestBoundsOfWebhooks(t *testing.T) {
	c := parse(t, good)
	path := strings.Repeat("/", 1<<20)
	c.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: make([]string, 101),
		ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Name: "a", Namespace: "b", Path: &path}, URL: &path},
	}}
	errs := validatorOf(t).Validate(t.Context(), c)
	want := `[spec.conversion.conversionReviewVersions: Too many: 101: must have at most 100 items, ` +
		`spec.conversion.webhookClientConfig.url: Too long: may not be more than 2048 bytes, ` +
		`spec.conversion.webhookClientConfig.service.path: Too long: may not be more than 2048 bytes]`
	if got := fmt.Sprint(errs.ToAggregate()); got != want {
		t.Errorf("%.500s, want %s", got, want)
	}
}
