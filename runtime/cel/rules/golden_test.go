package rules_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apijson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// golden is a schema with the results of the code of kube-apiserver 1.37 for its rules. testdata/corpus.jsonl.gz has one in each
// line: some for each feature, and the schemas with rules of gateway-api, karpenter, istio, cluster-api and crossplane, without
// descriptions. A program that calls k8s.io/apiextensions-apiserver v0.37.2 made them.
type golden struct {
	Name        string
	Schema      *apiextensionsv1.JSONSchemaProps
	Old         *apiextensionsv1.JSONSchemaProps // the old schema of the definition in an update
	Same        bool                             // the old schema is the same as Schema
	Check       [][]string                       // errors: type, field, value, detail
	CheckUpdate [][]string
	Costs       [][]any // path, cost, cost of the message, times, whether oldSelf is used
	Objects     []goldenObject
}

type goldenObject struct {
	Value    json.RawMessage
	Old      json.RawMessage
	Budget   int64 // 0 is the default budget
	Errors   [][]string
	Warnings []string
	Left     int64 // -2: the value depends on the iteration order of Go maps
}

func corpus(t testing.TB) []golden {
	t.Helper()
	file, err := os.Open("testdata/corpus.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var g golden
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		if err := d.Decode(&g); err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	if err := lines.Err(); err != nil || len(all) < 50 {
		t.Fatalf("%d schemas: %v", len(all), err)
	}
	return all
}

func normal(text string) string {
	return regexp.MustCompile(`selfType\d+`).ReplaceAllString(text, "selfType0")
}

// rows returns errors in the form of the corpus.
func rows(errs field.ErrorList) [][]string {
	var all [][]string
	for _, err := range errs {
		value := ""
		switch err.BadValue.(type) {
		case string, bool, int64, float64, nil:
			text, _ := json.Marshal(err.BadValue)
			value = string(text)
		}
		switch err.Type {
		case field.ErrorTypeRequired, field.ErrorTypeForbidden, field.ErrorTypeTooLong:
			value = ""
		}
		all = append(all, []string{string(err.Type), err.Field, value, normal(err.Detail)})
	}
	slices.SortFunc(all, slices.Compare[[]string])
	return all
}

// check returns all errors of a schema.
func check(c *rules.Compiler, props *apiextensionsv1.JSONSchemaProps, o rules.Options) [][]string {
	path := field.NewPath("spec", "validation", "openAPIV3Schema")
	return rows(c.Check(context.Background(), path, props, o))
}

func TestCheckAgainstKubeAPIServer(t *testing.T) {
	c := compilerOf(t)
	for _, g := range corpus(t) {
		t.Run(g.Name, func(t *testing.T) {
			if diff := cmp.Diff(g.Check, check(c, g.Schema, rules.Options{})); diff != "" {
				t.Errorf("new: - kube-apiserver, + here:\n%s", diff)
			}
			old := g.Old
			if g.Same {
				old = g.Schema
			}
			if old == nil {
				return
			}
			o := rules.Options{Stored: rules.ExpressionsOf(old), Unchanged: g.Same}
			if diff := cmp.Diff(g.CheckUpdate, check(c, g.Schema, o)); diff != "" {
				t.Errorf("update: - kube-apiserver, + here:\n%s", diff)
			}
		})
	}
}

func TestCostsAgainstKubeAPIServer(t *testing.T) {
	c := compilerOf(t)
	for _, g := range corpus(t) {
		t.Run(g.Name, func(t *testing.T) {
			var want, got []string
			for _, row := range g.Costs {
				want = append(want, fmt.Sprint(row...))
			}
			for _, e := range c.Estimates(g.Schema) {
				if !e.Broken {
					got = append(got, fmt.Sprint(e.Path, json.Number(fmt.Sprint(e.Cost)), json.Number(fmt.Sprint(e.Message)), json.Number(fmt.Sprint(e.Times)), e.UsesOldSelf))
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("- kube-apiserver, + here:\n%s", diff)
			}
		})
	}
}

func TestValidateAgainstKubeAPIServer(t *testing.T) {
	c := compilerOf(t)
	for _, g := range corpus(t) {
		t.Run(g.Name, func(t *testing.T) {
			s, err := structural.Compile(g.Schema)
			if err != nil {
				return
			}
			r, err := c.Compile(s)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range g.Objects {
				budget := o.Budget
				if budget == 0 {
					budget = rules.Budget
				}
				got := validate(t, r, o, budget)
				var warnings []string
				for _, err := range got.Tolerated {
					warnings = append(warnings, normal(err.Error()))
				}
				slices.Sort(warnings)
				if o.Left == -2 {
					continue
				}
				if diff := cmp.Diff(o.Errors, rows(got.Errors)); diff != "" {
					t.Errorf("object %d %s: - kube-apiserver, + here:\n%s", i, o.Value, diff)
				}
				if diff := cmp.Diff(o.Warnings, warnings); diff != "" {
					t.Errorf("object %d %s: warnings: - kube-apiserver, + here:\n%s", i, o.Value, diff)
				}
				if got.Budget != o.Left {
					t.Errorf("object %d %s: budget left is %d, not %d", i, o.Value, got.Budget, o.Left)
				}
			}
		})
	}
}

func validate(t *testing.T, r *rules.Rules, o goldenObject, budget int64) rules.Outcome {
	t.Helper()
	value := decode(t, o.Value)
	if o.Old == nil {
		return r.Validate(context.Background(), nil, value, budget)
	}
	return r.ValidateUpdate(context.Background(), nil, value, decode(t, o.Old), budget)
}

func decode(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := apijson.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
