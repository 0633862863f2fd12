package rules_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// texts returns the errors as clients read them.
func texts(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

// TestNoRules checks that a schema without rules costs nothing.
func TestNoRules(t *testing.T) {
	c := compilerOf(t)
	r := compileText(t, c, `{type: object, properties: {spec: {type: object}}}`)
	if r != nil {
		t.Errorf("there are rules: %v", r)
	}
	if o := r.ValidateUpdate(context.Background(), nil, map[string]any{}, map[string]any{}, 7); len(o.Errors) > 0 || o.Budget != 7 {
		t.Errorf("got %+v", o)
	}
	if errs := c.Check(context.Background(), nil, nil, rules.Options{}); errs != nil {
		t.Errorf("no schema has faults: %v", errs)
	}
}

// TestNothingIsCopied checks that the allocations depend on what the rules read, not on the size of the object, and that the
// object is not changed.
func TestNothingIsCopied(t *testing.T) {
	r := compileText(t, compilerOf(t), `
type: object
x-kubernetes-validations: [{rule: "self.spec.count > 0 && has(self.spec.big) && self.spec.big == oldSelf.spec.big"}]
properties:
  spec:
    type: object
    x-kubernetes-validations: [{rule: "self.count > 0"}, {rule: "self.list.size() > 0"}]
    properties:
      count: {type: integer}
      big: {type: string}
      list: {type: array, items: {type: object, properties: {a: {type: string}}}}
      map: {type: object, additionalProperties: {type: array, items: {type: string}}}
`)
	object := func(size int) map[string]any {
		list, members := []any{}, map[string]any{}
		for i := range size {
			list = append(list, map[string]any{"a": fmt.Sprint(i)})
			members[fmt.Sprint(i)] = []any{"x", "y"}
		}
		return map[string]any{"spec": map[string]any{"count": int64(1), "big": strings.Repeat("x", size), "list": list, "map": members}}
	}
	allocations := func(size int) float64 {
		value, old := object(size), object(size)
		before := apiruntime.DeepCopyJSONValue(value)
		n := testing.AllocsPerRun(50, func() {
			if o := r.ValidateUpdate(context.Background(), nil, value, old, rules.Budget); len(o.Errors) > 0 {
				t.Fatal(o.Errors)
			}
		})
		if !reflect.DeepEqual(before, any(value)) {
			t.Error("the object was changed")
		}
		return n
	}
	if few, many := allocations(1), allocations(5000); many > few+20 { // pools may be emptied meanwhile
		t.Errorf("%v allocations for a small object, %v for a large one", few, many)
	}
}

// TestConcurrently compiles and evaluates rules concurrently.
func TestConcurrently(t *testing.T) {
	c := compilerOf(t)
	r := compileText(t, c, twentyRules)
	object := twoKiB()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			mine := compileText(t, c, twentyRules)
			for range 20 {
				for _, r := range []*rules.Rules{r, mine} {
					if o := r.ValidateUpdate(context.Background(), nil, object, object, rules.Budget); len(o.Errors) > 0 {
						t.Error(o.Errors)
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestHostileRules checks that slow rules are refused when they are written, and are stopped if they are evaluated nevertheless.
func TestHostileRules(t *testing.T) {
	c := compilerOf(t)
	list, set := []any{}, []any{}
	for i := range 20_000 {
		list, set = append(list, fmt.Sprintf("element-%d", i)), append(set, int64(i))
	}
	object := map[string]any{"l": list, "s": strings.Repeat("a", 500_000), "set": set}
	for name, rule := range map[string]string{
		"quadratic":    "self.l.all(x, self.l.all(y, x != '' || y != ''))",
		"join":         "self.l.map(x, self.l.join(x)).size() > 0",
		"contains":     "self.l.all(x, self.s.contains(self.s))",
		"regex":        "!self.l.exists(x, self.s.matches('(((a*)*)*)*b'))",
		"regexOfRules": "!self.l.exists(x, self.s.matches(x))",
		"sort":         "self.l.all(x, self.l.sort() != [])",
		"equality":     "self.l.all(x, self.l == oldSelf.l)",
		"in":           "self.l.all(x, x in self.l)",
		"union":        "self.l.all(x, (self.set + self.set).size() > 0)",
		"unions":       "self.l.all(x, self.set == self.set)",
		"objects":      "self.l.all(x, self == oldSelf)",
	} {
		t.Run(name, func(t *testing.T) {
			props := schemaOf(t, fmt.Sprintf(`
type: object
x-kubernetes-validations: [{rule: %q}]
properties:
  l: {type: array, items: {type: string}}
  s: {type: string}
  set: {type: array, x-kubernetes-list-type: set, items: {type: integer}}
`, rule))
			errs := texts(c.Check(context.Background(), nil, props, rules.Options{}))
			if mayBeWritten := name == "objects"; !mayBeWritten && (len(errs) == 0 || !strings.Contains(errs[0], "estimated rule cost exceeds budget")) {
				t.Errorf("it may be written: %v", errs)
			}
			s, err := structural.Compile(props)
			if err != nil {
				t.Fatal(err)
			}
			r, err := c.Compile(s)
			if err != nil {
				t.Fatal(err)
			}
			o := r.ValidateUpdate(context.Background(), nil, object, apiruntime.DeepCopyJSON(object), rules.Budget)
			if len(o.Errors) != 1 || o.Budget >= 0 || !strings.Contains(o.Errors[0].Detail, "no further validation rules will be run") {
				t.Errorf("it was not stopped: %v, %d left", o.Errors, o.Budget)
			}
		})
	}
}

// TestHeavyValues checks that repeated reads of large values are stopped, including those that cost almost nothing in
// kube-apiserver. Without that, no rule would cost more than some ten thousands.
func TestHeavyValues(t *testing.T) {
	c := compilerOf(t)
	object := func() map[string]any {
		big := func() string { return strings.Repeat("aGFsbG8h", 100_000) }
		return map[string]any{
			"pattern": "x{900}x{900}x{900}", "s": big(), "like": big()[1:] + "a", "o": map[string]any{"s": big()}, "unknown": map[string]any{"s": big()},
			"bytes": big(), "date": big(), "map": map[string]any{big(): int64(1)}, "set": []any{big()}, "byteSet": []any{big()},
			"keyed": []any{map[string]any{"a": big(), "b": "", "c": "", "d": ""}},
		}
	}
	value, old := object(), object()
	for rule, times := range map[string]int{
		"self.s.size() > 0": 300, "self.s != 'x'": 300, "self.s < 'x'": 300, "self.s.charAt(0) == 'a'": 50, "int(self.s) == 1 || true": 300,
		"'%s'.format([self.s]) != 'x'": 300, "self.s in [self.like] || true": 300, "'a'.matches('' + self.pattern) || true": 150,
		"'a'.matches('x{900}x{900}x{900}') || 'a'.find(self.pattern) == ''": 150, "matches('x{900}x{900}x{900}', self.pattern) || true": 150, "[self.s] != [self.like]": 300,
		"self.s in self.map": 7000, "self.map[self.s] == 1": 7000, "dyn(self)[self.s] == 1 || true": 800,
		"self.o == oldSelf.o": 7000, "self.unknown == oldSelf.unknown": 7000, "self.bytes.size() > 0": 900, "self.date > self.date || true": 60,
		"self.set == oldSelf.set": 900, "self.byteSet == oldSelf.byteSet": 400, "self.keyed == oldSelf.keyed": 70,
		"(self.set + oldSelf.set).size() == 1": 900,
	} {
		t.Run(rule, func(t *testing.T) {
			r := compileText(t, c, fmt.Sprintf(`
type: object
x-kubernetes-validations: [{rule: %q}]
properties:
  s: {type: string}
  like: {type: string}
  pattern: {type: string}
  o: {type: object, properties: {s: {type: string}}}
  unknown: {type: object, x-kubernetes-preserve-unknown-fields: true}
  bytes: {type: string, format: byte}
  date: {type: string, format: date-time}
  map: {type: object, additionalProperties: {type: integer}}
  set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
  byteSet: {type: array, x-kubernetes-list-type: set, items: {type: string, format: byte}}
  keyed:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [a, b, c, d]
    items: {type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}, d: {type: string}}}
`, fmt.Sprintf("lists.range(%d).all(y, %s)", times, rule)))
			o := r.ValidateUpdate(context.Background(), nil, value, old, rules.Budget)
			if len(o.Errors) != 1 || o.Budget >= 0 || !strings.Contains(o.Errors[0].Detail, "call cost exceeds limit") {
				t.Errorf("it was not stopped: %d left, %.200s", o.Budget, fmt.Sprint(texts(o.Errors)))
			}
		})
	}
}

// TestLargeRegexes checks that short regular expressions cannot take much memory: 23 KB of them could take a second and 130 MB.
func TestLargeRegexes(t *testing.T) {
	c := compilerOf(t)
	one := "self.metadata.name.matches('" + strings.Repeat("x{1000}", 3300) + "')"
	some := "self.metadata.name.find('" + strings.Repeat("x{1000}", 200) + "') == ''"
	for name, test := range map[string]struct {
		rules []string
		want  []string // of errors
	}{
		"one":     {[]string{one}, []string{"program instantiation failed: error parsing regexp: expression too large"}},
		"message": {[]string{"self.metadata.name == ''"}, []string{"messageExpression instantiation failed: error parsing regexp: expression too large"}},
		"few":     {[]string{some, some, some}, nil},
		"all": {[]string{some, some, some, some, some, some, "true"}, []string{
			"the regular expressions of all rules together are too large", "the regular expressions of all rules together are too large"}},
	} {
		t.Run(name, func(t *testing.T) {
			props := schemaOf(t, `{type: object}`)
			for _, rule := range test.rules {
				v := apiextensionsv1.ValidationRule{Rule: rule}
				if name == "message" {
					v.MessageExpression = one + " ? 'a' : 'b'"
				}
				props.XValidations = append(props.XValidations, v)
			}
			errs := texts(c.Check(context.Background(), nil, props, rules.Options{}))
			if len(errs) != len(test.want) {
				t.Fatalf("got %d errors: %.500q", len(errs), errs)
			}
			for i, want := range test.want {
				if !strings.Contains(errs[i], want) {
					t.Errorf("got %.100s... %s", errs[i], errs[i][max(0, len(errs[i])-200):])
				}
			}
			if name != "all" {
				return
			}
			s, err := structural.Compile(props)
			if err != nil {
				t.Fatal(err)
			}
			r, err := c.Compile(s)
			if err != nil {
				t.Fatal(err)
			}
			o := r.Validate(context.Background(), nil, map[string]any{"metadata": map[string]any{"name": "x"}}, rules.Budget)
			if len(o.Errors) != 2 || !strings.Contains(o.Errors[1].Detail, "rule compile error: program instantiation failed") {
				t.Errorf("got %.500q", texts(o.Errors))
			}
		})
	}
}

// TestFaultyTransitionRules checks that a rule that uses oldSelf is recognized even if it does not compile.
func TestFaultyTransitionRules(t *testing.T) {
	props := schemaOf(t, `
type: object
properties:
  a: {type: string, x-kubernetes-validations: [{rule: "oldSelf.value() == 'a' && double('x') > 1.0", optionalOldSelf: true}]}
`)
	errs := texts(compilerOf(t).Check(context.Background(), nil, props, rules.Options{}))
	if len(errs) != 1 || !strings.Contains(errs[0], "program instantiation failed") {
		t.Errorf("got %q", errs)
	}
}

// TestSums checks that the concatenation of two lists behaves like other lists.
func TestSums(t *testing.T) {
	var all strings.Builder
	all.WriteString("type: object\nproperties:\n")
	for _, name := range []string{"a", "b"} {
		fmt.Fprintf(&all, "  %s: {type: array, items: {type: integer}}\n", name)
	}
	all.WriteString("x-kubernetes-validations:\n")
	for _, rule := range []string{
		"self.a + self.b == [1, 2, 3]", "[1, 2, 3] == self.a + self.b", "(self.a + self.b).size() == 3", "(self.a + self.b)[2] == 3",
		"(self.a + self.b)[0] == 1", "3 in self.a + self.b && 1 in self.a + self.b && !(4 in self.a + self.b)",
		"(self.a + self.b + self.a)[3] == 1", "(self.a + self.b).map(x, x * 2) == [2, 4, 6]", "self.a + [3] == self.a + self.b",
		"(self.a + self.b).sum() == 6", "type(self.a + self.b) == list", "(self.a + self.b + []).all(x, x > 0)",
		"self.a + self.b != self.b + self.a", "dyn(self.a + self.b) != 1",
	} {
		fmt.Fprintf(&all, "- {rule: %q}\n", rule)
	}
	r := compileText(t, compilerOf(t), all.String())
	o := r.Validate(context.Background(), nil, map[string]any{"a": []any{int64(1), int64(2)}, "b": []any{int64(3)}}, rules.Budget)
	for _, text := range texts(o.Errors) {
		t.Error(text)
	}
	r = compileText(t, compilerOf(t), strings.ReplaceAll(all.String(), "[2] == 3", "[5] == 3"))
	o = r.Validate(context.Background(), nil, map[string]any{"a": []any{int64(1), int64(2)}, "b": []any{int64(3)}}, rules.Budget)
	if len(o.Errors) != 1 || !strings.Contains(o.Errors[0].Detail, "index out of bounds: 5") {
		t.Errorf("got %v", o.Errors)
	}
}

// TestDeepRules checks that rules that are nested too deeply, or are too long, do not compile.
func TestDeepRules(t *testing.T) {
	c := compilerOf(t)
	deep := "true"
	for i := range 300 {
		deep = fmt.Sprintf("[1].all(x%d, %s)", i, deep)
	}
	for name, rule := range map[string]string{
		"macros": deep, "brackets": strings.Repeat("(", 2000) + "true" + strings.Repeat(")", 2000),
		"nots": strings.Repeat("!", 100_000) + "true", "long": strings.Repeat("true && ", 50_000) + "true",
		"lists": strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + " == []",
	} {
		t.Run(name, func(t *testing.T) {
			props := schemaOf(t, `{type: object, x-kubernetes-validations: [{rule: "true"}]}`)
			props.XValidations[0].Rule = rule
			if errs := c.Check(context.Background(), nil, props, rules.Options{}); len(errs) == 0 {
				t.Error("it may be written")
			}
		})
	}
}

// TestInterrupted checks that the end of a context ends an evaluation with an error.
func TestInterrupted(t *testing.T) {
	r := compileText(t, compilerOf(t), `{type: object, x-kubernetes-validations: [{rule: "self.l.all(x, x > 0)"}], properties: {l: {type: array, items: {type: integer}}}}`)
	list := []any{}
	for range 10_000 {
		list = append(list, int64(1))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o := r.Validate(ctx, nil, map[string]any{"l": list}, rules.Budget)
	if len(o.Errors) != 1 || !strings.Contains(o.Errors[0].Detail, "operation interrupted") {
		t.Errorf("got %v", o.Errors)
	}
}

// TestOrder checks the order of errors: rules in their order, outer values before inner ones, and members by name.
func TestOrder(t *testing.T) {
	r := compileText(t, compilerOf(t), `
type: object
x-kubernetes-validations: [{rule: "false", message: "1"}, {rule: "false", message: "2"}]
properties:
  b: {type: integer, x-kubernetes-validations: [{rule: "false", message: "5"}]}
  a: {type: object, additionalProperties: {type: integer, x-kubernetes-validations: [{rule: "false", message: "3"}]}}
`)
	object := map[string]any{"a": map[string]any{"z": int64(1), "y": int64(1), "x": int64(1)}, "b": int64(1)}
	want := []string{
		"<nil>: Invalid value: 1", "<nil>: Invalid value: 2",
		"a[x]: Invalid value: 1: 3", "a[y]: Invalid value: 1: 3", "a[z]: Invalid value: 1: 3", "b: Invalid value: 1: 5",
	}
	for range 20 {
		if got := texts(r.Validate(context.Background(), nil, object, rules.Budget).Errors); !reflect.DeepEqual(got[2:], want[2:]) ||
			!strings.HasSuffix(got[0], "1") || !strings.HasSuffix(got[1], "2") {
			t.Fatalf("got %q", got)
		}
	}
}

// TestBlocked checks which errors of an object prevent the evaluation of its rules.
func TestBlocked(t *testing.T) {
	path := field.NewPath("spec")
	for _, err := range []*field.Error{
		field.NotSupported(path, "x", []string{"a"}), field.Required(path, ""), field.TooLong(path, "", 1), field.TooMany(path, 2, 1),
		field.TypeInvalid(path, 1, ""),
	} {
		blocked := rules.Blocked(field.ErrorList{field.Invalid(path, 1, ""), err})
		if blocked == nil || blocked.Type != field.ErrorTypeInvalid || !strings.HasPrefix(blocked.Detail, "some validation rules were not checked") {
			t.Errorf("%v: got %v", err, blocked)
		}
	}
	if err := rules.Blocked(field.ErrorList{field.Invalid(path, 1, ""), field.Duplicate(path, 1), field.Forbidden(path, "")}); err != nil {
		t.Errorf("got %v", err)
	}
}

// TestEscapedKeys checks that elements of lists of type map correspond by keys whose names are not identifiers.
func TestEscapedKeys(t *testing.T) {
	r := compileText(t, compilerOf(t), `
type: object
x-kubernetes-validations: [{rule: "dyn(self.a) == dyn(self.b)"}, {rule: "(self.a + dyn(self.b)).size() == 2"}]
properties:
  a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [the-key], items: {type: object, properties: {the-key: {type: string}, v: {type: integer}}}}
  b: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [the-key], items: {type: object, properties: {the-key: {type: string}, v: {type: integer}}}}
`)
	one, two := map[string]any{"the-key": "one", "v": int64(1)}, map[string]any{"the-key": "two", "v": int64(2)}
	o := r.Validate(context.Background(), nil, map[string]any{"a": []any{one, two}, "b": []any{two, one}}, rules.Budget)
	if len(o.Errors) > 0 {
		t.Error(o.Errors)
	}
	other := map[string]any{"the-key": "two", "v": int64(3)}
	if o = r.Validate(context.Background(), nil, map[string]any{"a": []any{one, two}, "b": []any{other, one}}, rules.Budget); len(o.Errors) != 1 {
		t.Errorf("got %v", o.Errors)
	}
}

// TestStoredExpressions checks that an update may keep expressions that need the newest release, but may not add them.
func TestStoredExpressions(t *testing.T) {
	c := compilerOf(t)
	props := schemaOf(t, `{type: object, x-kubernetes-validations: [{rule: "self.l.includes('a')"}], properties: {l: {type: array, maxItems: 3, items: {type: string, maxLength: 3}}}}`)
	if errs := texts(c.Check(context.Background(), nil, props, rules.Options{})); len(errs) != 1 || !strings.Contains(errs[0], "undeclared reference to 'includes'") {
		t.Errorf("new: %v", errs)
	}
	stored := rules.ExpressionsOf(nil, props, &apiextensionsv1.JSONSchemaProps{Type: "object"})
	if errs := c.Check(context.Background(), nil, props, rules.Options{Stored: stored}); len(errs) > 0 {
		t.Errorf("stored: %v", errs)
	}
}

// TestBudgetAtItsEnd checks that an evaluation that costs nothing needs no budget, but that no schema is started without a
// budget.
func TestBudgetAtItsEnd(t *testing.T) {
	r := compileText(t, compilerOf(t), `
type: object
x-kubernetes-validations: [{rule: "self.a == 1"}, {rule: "false", message: free}]
properties: {a: {type: integer, x-kubernetes-validations: [{rule: "true"}]}}
`)
	object := map[string]any{"a": int64(1)}
	cost := rules.Budget - r.Validate(context.Background(), nil, object, rules.Budget).Budget
	o := r.Validate(context.Background(), nil, object, cost)
	if got := texts(o.Errors); len(got) != 2 || !strings.HasSuffix(got[0], "free") || !strings.HasPrefix(got[1], "a: ") ||
		!strings.Contains(got[1], "running out of cost budget") || o.Budget != -1 {
		t.Errorf("got %q, %d left", got, o.Budget)
	}
	if o := r.Validate(context.Background(), nil, object, cost-1); len(o.Errors) != 1 || o.Budget != -1 {
		t.Errorf("got %q, %d left", texts(o.Errors), o.Budget)
	}
	if o := r.Validate(context.Background(), nil, object, 1<<63-1); len(o.Errors) != 1 || o.Budget < 1<<62 {
		t.Errorf("got %q, %d left", texts(o.Errors), o.Budget)
	}
}
