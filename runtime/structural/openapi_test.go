package structural_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apijson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// openAPI converts a schema in the way in which kube-apiserver converts it for kube-openapi's validation.
func openAPI(t testing.TB, p *props) *spec.Schema {
	if p == nil {
		return nil
	}
	s := &spec.Schema{SchemaProps: spec.SchemaProps{
		Nullable: p.Nullable, Format: p.Format, Maximum: p.Maximum, ExclusiveMaximum: p.ExclusiveMaximum, Minimum: p.Minimum,
		ExclusiveMinimum: p.ExclusiveMinimum, MaxLength: p.MaxLength, MinLength: p.MinLength, Pattern: p.Pattern, MaxItems: p.MaxItems,
		MinItems: p.MinItems, UniqueItems: p.UniqueItems, MultipleOf: p.MultipleOf, MaxProperties: p.MaxProperties,
		MinProperties: p.MinProperties, Required: p.Required, Not: openAPI(t, p.Not),
	}}
	known := strfmt.Default.ContainsName(p.Format)
	switch {
	case p.XIntOrString:
		s.Type = spec.StringOrArray{"integer", "string"}
	case p.Type != "":
		s.Type = spec.StringOrArray{p.Type}
		switch p.Type {
		case "string":
		case "integer":
			known = p.Format == "int32" || p.Format == "int64"
		case "number":
			known = p.Format == "float" || p.Format == "double"
		default:
			known = false
		}
	}
	if !known {
		s.Format = ""
	}
	for i := range p.Enum {
		var v any
		if err := apijson.Unmarshal(p.Enum[i].Raw, &v); len(p.Enum[i].Raw) > 0 && err != nil {
			t.Fatal(err)
		}
		s.Enum = append(s.Enum, v)
	}
	for _, list := range []struct {
		from []props
		to   *[]spec.Schema
	}{{p.AllOf, &s.AllOf}, {p.AnyOf, &s.AnyOf}, {p.OneOf, &s.OneOf}} {
		for i := range list.from {
			*list.to = append(*list.to, *openAPI(t, &list.from[i]))
		}
	}
	for name, property := range p.Properties {
		s.SetProperty(name, *openAPI(t, &property))
	}
	if p.Items != nil && p.Items.Schema != nil {
		s.Items = &spec.SchemaOrArray{Schema: openAPI(t, p.Items.Schema)}
	}
	if p.AdditionalProperties != nil {
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: p.AdditionalProperties.Allows, Schema: openAPI(t, p.AdditionalProperties.Schema)}
	}
	return s
}

// decodedProps returns a schema as the server decodes it from the request of a client.
func decodedProps(t testing.TB, p *props) *props {
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	decoded := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal(text, decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// compareOpenAPI checks that the fast and the slow validation agree with kube-openapi: verdict, errors and steps.
func compareOpenAPI(t *testing.T, p *props, value any) bool {
	s, err := structural.Compile(p)
	if err != nil {
		return false
	}
	theirs := validate.NewSchemaValidator(openAPI(t, p), nil, "", strfmt.Default).Validate(value)
	var want []string
	for _, err := range theirs.Errors {
		want = append(want, err.Error())
	}
	got, steps := structural.Findings(s, value)
	slices.Sort(want)
	slices.Sort(got)
	text, _ := json.Marshal(p)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Fatalf("errors (-theirs +ours): %s\nschema %s\nvalue %s", diff, text, asJSON(value))
	}
	if steps != theirs.MatchCount {
		t.Fatalf("%d steps, want %d\nschema %s\nvalue %s", steps, theirs.MatchCount, text, asJSON(value))
	}
	if quick := structural.Allows(s, value); quick != (len(got) == 0) {
		t.Fatalf("the quick verdict is %t, but %s\nschema %s\nvalue %s", quick, strings.Join(got, "; "), text, asJSON(value))
	}
	return len(got) == 0
}

// TestOpenAPI compares with kube-openapi on random schemas, structural or not, and random values.
func TestOpenAPI(t *testing.T) {
	rounds, valid := 1500, 0
	if testing.Short() {
		rounds = 300
	}
	for seed := range rounds {
		r := newRandom(uint64(1_000_000 + seed))
		p := r.structure(3)
		if seed%4 == 0 {
			p = withoutOdd(r.spoiled(p))
		}
		p = decodedProps(t, p)
		for range 8 {
			var value any
			if p.Items != nil || p.Type != "array" {
				value = r.value(p, 3, 85)
			} else {
				value = r.anything(3)
			}
			if compareOpenAPI(t, p, value) {
				valid++
			}
		}
	}
	if all := rounds * 8; valid < all/8 || valid > all*7/8 {
		t.Errorf("%d of %d values are valid: the test says little", valid, all)
	}
}

// withoutOdd removes the keywords that kube-openapi handles differently. Schemas with these keywords do not compile.
func withoutOdd(p *props) *props {
	p.AdditionalItems, p.Definitions, p.Dependencies, p.PatternProperties, p.Ref = nil, nil, nil, nil, nil
	return p
}
