package rules_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"testing"

	"github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// integers returns a schema with n properties that have a rule each.
func integers(n, from int) *apiextensionsv1.JSONSchemaProps {
	fields := map[string]apiextensionsv1.JSONSchemaProps{}
	for i := range n {
		fields[fmt.Sprint("p", i)] = apiextensionsv1.JSONSchemaProps{Type: "integer", XValidations: apiextensionsv1.ValidationRules{{Rule: fmt.Sprintf("self < %d", from+i)}}}
	}
	return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields}
}

func fingerprint(t *testing.T, props *apiextensionsv1.JSONSchemaProps) structural.Fingerprint {
	t.Helper()
	f, err := structural.FingerprintOf(props)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestTake checks that the rules of a schema without errors can be taken once, and that they are those of the schema.
func TestTake(t *testing.T) {
	t.Parallel()
	c, err := rules.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	good := integers(3, 10)
	if c.Take(fingerprint(t, good)) != nil {
		t.Error("there are rules of a schema that was not checked")
	}
	if errs := c.Check(t.Context(), nil, good, rules.Options{}); len(errs) > 0 {
		t.Fatal(errs)
	}
	r := c.Take(fingerprint(t, good))
	if r == nil || c.Take(fingerprint(t, good)) != nil {
		t.Fatal("the rules can not be taken, or twice")
	}
	for value, want := range map[int64]int{9: 0, 12: 1} {
		if out := r.Validate(t.Context(), nil, map[string]any{"p1": value}, rules.Budget); len(out.Errors) != want {
			t.Errorf("%d: errors %v", value, out.Errors)
		}
	}
	for name, bad := range map[string]*apiextensionsv1.JSONSchemaProps{
		"a rule":    ruled(apiextensionsv1.ValidationRule{Rule: "self.x"}),
		"a default": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"n": {Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("5")}, XValidations: apiextensionsv1.ValidationRules{{Rule: "self < 3"}}}}},
	} {
		if errs := c.Check(t.Context(), nil, bad, rules.Options{}); len(errs) == 0 {
			t.Errorf("%s has no errors", name)
		}
		if c.Take(fingerprint(t, bad)) != nil {
			t.Errorf("%s: the rules of a schema with errors are kept", name)
		}
	}
}

// TestTakeIsBounded checks that rules that nobody takes make room for others.
func TestTakeIsBounded(t *testing.T) {
	t.Parallel()
	c, err := rules.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	const each = rules.MaxRules / 4
	var all []structural.Fingerprint
	for i := range 7 {
		props := integers(each, 1000*i+1)
		if errs := c.Check(t.Context(), nil, props, rules.Options{}); len(errs) > 0 {
			t.Fatal(errs)
		}
		all = append(all, fingerprint(t, props))
	}
	if n := c.Kept(); n != rules.MaxRules {
		t.Errorf("%d rules are kept", n)
	}
	if c.Take(all[6]) == nil {
		t.Error("the rules of the last schema are not kept")
	}
	if n := c.Kept(); n != rules.MaxRules-each {
		t.Errorf("%d rules are kept after a part is taken", n)
	}
}

// TestUnchangedRulesAreNotCompiled checks that an update compiles no rule of a schema that it does not change. A schema that is
// checked for the first time, or that an update changes, is checked. It must not run in parallel with other tests.
func TestUnchangedRulesAreNotCompiled(t *testing.T) {
	c, err := rules.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	props := integers(200, 1)
	cost := func(unchanged bool) uint64 {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		if errs := c.Check(context.Background(), nil, props, rules.Options{Stored: rules.ExpressionsOf(props), Unchanged: unchanged}); len(errs) > 0 {
			t.Fatal(errs)
		}
		goruntime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	first, again, changed := cost(true), cost(true), cost(false)
	t.Logf("%d KB, then %d KB, and %d KB for a change", first>>10, again>>10, changed>>10)
	if first < 5<<20 || changed < 5<<20 || again > 2<<20 {
		t.Error("rules are compiled that need not be, or not compiled")
	}
}
