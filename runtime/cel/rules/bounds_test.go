package rules_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ruled returns a schema with rules.
func ruled(all ...apiextensionsv1.ValidationRule) *apiextensionsv1.JSONSchemaProps {
	return &apiextensionsv1.JSONSchemaProps{Type: "object", XValidations: all}
}

// TestMaxRules compiles the maximum number of rules, and fails for one more.
func TestMaxRules(t *testing.T) {
	long := apiextensionsv1.ValidationRule{Rule: "true" + strings.Repeat(" ", rules.MaxRule-4)}
	many := make([]apiextensionsv1.ValidationRule, rules.MaxRules)
	for i := range many {
		many[i].Rule = "true"
	}
	const tooMany = "the schema has more than 1000 rules, or more than 65536 bytes of them"
	c := compilerOf(t)
	for name, tt := range map[string]struct {
		all  []apiextensionsv1.ValidationRule
		want string
	}{
		"as many as may be": {many, ""},
		"one more":          {append(many, many[0]), tooMany},
		"as long as may be": {[]apiextensionsv1.ValidationRule{long}, ""},
		"longer":            {[]apiextensionsv1.ValidationRule{{Rule: long.Rule + " "}}, "a rule of the schema is longer than 16384 bytes"},
		"a longer message": {[]apiextensionsv1.ValidationRule{{Rule: "true", MessageExpression: "'" + long.Rule + "'"}},
			"a rule of the schema is longer than 16384 bytes"},
		"long together": {repeated(long, 4), tooMany},
	} {
		s, err := structural.Compile(ruled(tt.all...))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Compile(s); fmt.Sprint(err) != tt.want && (err != nil || tt.want != "") {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func repeated(rule apiextensionsv1.ValidationRule, n int) []apiextensionsv1.ValidationRule {
	all := make([]apiextensionsv1.ValidationRule, n)
	for i := range all {
		all[i] = rule
	}
	return all
}

// endAfter is a context that ends after a number of calls of Err.
type endAfter struct {
	context.Context //nolint:containedctx // endAfter is a context itself
	left            int
}

func (e *endAfter) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestCheckEnds ends the context in the middle of many different rules.
func TestCheckEnds(t *testing.T) {
	var all []apiextensionsv1.ValidationRule
	for i := range 1000 {
		all = append(all, apiextensionsv1.ValidationRule{Rule: fmt.Sprintf("%d == oldSelf", i)}) // each rule causes an error
	}
	c := compilerOf(t)
	if errs := c.Check(t.Context(), nil, ruled(all...), rules.Options{}); len(errs) < 1000 {
		t.Fatalf("%d errors of a thousand rules", len(errs))
	}
	errs := c.Check(&endAfter{t.Context(), 100}, nil, ruled(all...), rules.Options{})
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), context.Canceled.Error()) {
		t.Errorf("%.300v, want only that the context has ended", errs.ToAggregate())
	}
	ended, end := context.WithCancel(t.Context())
	end()
	defaulted := ruled(all...)
	defaulted.Properties = map[string]apiextensionsv1.JSONSchemaProps{"a": {
		Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"x"`)}, XValidations: apiextensionsv1.ValidationRules{{Rule: "self != ''"}},
	}}
	if errs := c.Check(ended, nil, defaulted, rules.Options{}); len(errs) != 1 {
		t.Errorf("%.300v, want only that the context has ended", errs.ToAggregate())
	}
}

// TestEqualRules has the same rule many times with different messages. Each message is reported.
func TestEqualRules(t *testing.T) {
	var all []apiextensionsv1.ValidationRule
	for i := range 3 {
		all = append(all, apiextensionsv1.ValidationRule{Rule: "!has(self.metadata)", Message: fmt.Sprint("message ", i)})
	}
	s, err := structural.Compile(ruled(all...))
	if err != nil {
		t.Fatal(err)
	}
	r, err := compilerOf(t).Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(r.Validate(t.Context(), nil, map[string]any{"metadata": map[string]any{"name": "a"}}, rules.Budget).Errors.ToAggregate())
	for i := range 3 {
		if !strings.Contains(text, fmt.Sprint("message ", i)) {
			t.Errorf("%s lacks the message %d", text, i)
		}
	}
}
