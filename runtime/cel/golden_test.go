package cel_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/keelson-dev/keelson/runtime/cel"
	"github.com/keelson-dev/keelson/runtime/cel/internal/library"
)

// outcome is the result of an expression in some versions.
type outcome struct {
	Since  int    // the newest version with this outcome: [cel.Stored] or a minor version
	Fault  string // of the compilation
	Type   string
	Min    uint64 // the estimated cost
	Max    uint64
	Result string
	Error  string // of the evaluation
	Cost   uint64
}

// record is an expression and its outcomes in several versions of the language of kube-apiserver 1.37, the newest version first.
// A version with the same outcome as the next newer one is left out. testdata/corpus.jsonl.gz has some thousands of records, one
// in each line. A program that calls k8s.io/apiserver v0.37.2 made them: expressions written by hand, every function with values
// of every accepted kind and some others, and random expressions.
type record struct {
	Expression string
	Outcomes   []outcome
}

// records reads the corpus.
func records(t testing.TB) []record {
	t.Helper()
	f, err := os.Open("testdata/corpus.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []record
	for lines := bufio.NewScanner(z); lines.Scan(); {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if len(all) < 5000 {
		t.Fatalf("only %d records", len(all))
	}
	return all
}

// selfType returns the type of self in the corpus.
func selfType() *cel.DeclType {
	const big = cel.MaxRequestSize - 2
	object := func(of map[string]*cel.DeclType) *cel.DeclType {
		fields := make(map[string]*cel.DeclField)
		for name, typ := range of {
			fields[name] = &cel.DeclField{Name: name, Type: typ}
		}
		return cel.Object("", fields)
	}
	item := func() *cel.DeclType {
		return object(map[string]*cel.DeclType{"name": cel.String(80), "value": cel.Int()})
	}
	mapOf := func(elem *cel.DeclType, most int64) *cel.DeclType { return cel.Map(cel.String(0), elem, most) }
	return object(map[string]*cel.DeclType{
		"s": cel.String(256), "long": cel.String(big), "e": cel.String(5), "i": cel.Int(), "d": cel.Double(), "b": cel.Bool(),
		"by": cel.ScalarOf(celgo.BytesType, cel.MinStringSize, 100),
		"du": cel.ScalarOf(celgo.DurationType, cel.MinDurationSize, cel.MaxDurationSize),
		"ts": cel.ScalarOf(celgo.TimestampType, cel.MinDateTimeSize, cel.MaxDateTimeSize),
		"ls": cel.List(cel.String(40), 10), "li": cel.List(cel.Int(), 20), "ld": cel.List(cel.Double(), 20), "lb": cel.List(cel.Bool(), 20),
		"ll": cel.List(cel.List(cel.Int(), 5), 5), "empty": cel.List(cel.String(40), 3), "ul": cel.List(cel.String(big), big/3),
		"lo": cel.List(item(), 8), "m": mapOf(cel.String(60), 16), "mi": mapOf(cel.Int(), 16), "um": mapOf(cel.String(big), big/8),
		"mo": mapOf(item(), 4), "any": cel.ScalarOf(celgo.DynType, 1, big), "anyint": cel.ScalarOf(celgo.DynType, 1, big),
		"o":   object(map[string]*cel.DeclType{"x": cel.Int(), "__namespace__": cel.String(63), "a__dash__b": cel.String(10)}),
		"nul": cel.String(7),
	}).Named("selfType")
}

// variables returns the variables of the corpus.
func variables() []cel.Variable {
	self := selfType()
	return []cel.Variable{
		{Name: "self", Type: self},
		{Name: "oldSelf", Type: self, Optional: true},
		{Name: "x", Type: cel.Dyn()},
		{Name: "authorizer", Type: cel.ScalarOf(library.AuthorizerType, 0, cel.Unbounded)},
		{Name: "authorizer.requestResource", Type: cel.ScalarOf(library.ResourceCheckType, 0, cel.Unbounded)},
	}
}

// checker denies and fails depending on the verb. The reason describes the check.
func checker(_ context.Context, c library.Check) library.Decision {
	user := "jane"
	if c.ServiceAccountName != "" {
		user = "system:serviceaccount:" + c.ServiceAccountNamespace + ":" + c.ServiceAccountName
	}
	var required [2]int
	var failed [2]bool
	if c.FieldSelector != "" {
		s, err := fields.ParseSelector(c.FieldSelector)
		if failed[0] = err != nil; err == nil {
			required[0] = len(s.Requirements())
		}
	}
	if c.LabelSelector != "" {
		r, err := labels.ParseToRequirements(c.LabelSelector)
		required[1], failed[1] = len(r), err != nil
	}
	text := fmt.Sprintf("%s %s|%s|%s|%s|%s|%s|%s|%v|%d %v|%d %v", user, c.Verb, c.Path, c.Group, c.Resource, c.Subresource, c.Namespace,
		c.Name, c.Path == "", required[0], failed[0], required[1], failed[1])
	switch c.Verb {
	case "deny":
		return library.Decision{Reason: text}
	case "fail":
		return library.Decision{Reason: text, Err: errors.New("failed")}
	}
	return library.Decision{Allowed: true, Reason: text}
}

// activation returns the values of the variables of the corpus.
func activation(t testing.TB) celgo.Activation {
	vars := values()
	vars["oldSelf"] = types.OptionalOf(types.DefaultTypeAdapter.NativeToValue(vars["self"]))
	vars["authorizer"] = library.NewAuthorizer(context.Background(), checker)
	vars["authorizer.requestResource"] = library.NewResourceAuthorizer(context.Background(), checker,
		library.Check{Group: "apps", Resource: "deployments", Namespace: "default", Name: "web"})
	a, err := celgo.NewActivation(vars)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// environment returns an environment with the variables of the corpus.
func environment(t testing.TB, version cel.Version) *cel.Environment {
	t.Helper()
	base, err := cel.New(version)
	if err != nil {
		t.Fatal(err)
	}
	if version == cel.Stored {
		if base, err = base.WithPatches(); err != nil {
			t.Fatal(err)
		}
	}
	env, err := base.Extend(variables())
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// budget is the largest budget.
const budget = math.MaxInt64

// panicked reports whether a function of cel-go panicked because of a value that it did not expect. The text then has the name of
// a Go type.
func panicked(text string) bool {
	return strings.HasPrefix(text, "internal error: interface conversion")
}

// run compiles and evaluates an expression.
func run(env *cel.Environment, expression string, vars celgo.Activation) outcome {
	program, err := env.Compile(expression)
	if err != nil {
		return outcome{Fault: err.Error()}
	}
	o := outcome{Type: program.Type().String(), Min: program.Cost().Min, Max: program.Cost().Max}
	result, remaining, err := program.Eval(context.Background(), vars, budget)
	o.Cost = uint64(budget) - uint64(remaining)
	if err != nil {
		o.Error = err.Error()
	} else {
		o.Result = show(result)
	}
	return o
}

// TestGolden compiles and evaluates the corpus in each version.
func TestGolden(t *testing.T) {
	all := records(t)
	vars := activation(t)
	differ := 0
	for _, version := range []cel.Version{cel.Stored, 37, 36, 33, 32, 31, 30, 29, 28, 27, 24} {
		env := environment(t, version)
		for i, r := range all {
			var want outcome
			for _, o := range r.Outcomes {
				if cel.Version(o.Since) >= version {
					want = o
				}
			}
			if cel.Version(want.Since) != version && i%20 != 0 {
				continue // the same as in the next newer version; a few expressions are enough
			}
			want.Since = 0
			if want.Cost > math.MaxInt64 { // no budget is as large as this
				want.Error, want.Cost = cel.ErrBudget.Error(), budget+1
			}
			if panicked(want.Error) {
				want.Error = strings.NewReplacer("cel.Quantity", "library.QuantityValue", "cel.Semver", "library.SemverValue",
					"cel.IP", "library.IPValue").Replace(want.Error)
			}
			if got := run(env, r.Expression, vars); got != want {
				if differ++; differ <= 20 {
					t.Errorf("%v: %s\n got %+v\nwant %+v", version, r.Expression, got, want)
				}
			}
		}
	}
	if differ > 20 {
		t.Errorf("%d differ", differ)
	}
}

func mustDuration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		panic(err)
	}
	return d
}

func mustTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t
}
