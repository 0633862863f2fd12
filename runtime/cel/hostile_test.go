package cel_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"

	"github.com/keelson-dev/keelson/runtime/cel"
)

// hostile returns expressions that would run forever, or need more memory than there is, with values that fit into a request. big
// is a long string of one letter; bee is the same string with another letter at its end.
func hostile() []string {
	twice := func(from, list string, times int) string {
		var b strings.Builder
		b.WriteString(from)
		for range times {
			b.WriteString(".map(a, " + list + ")")
		}
		return b.String()
	}
	tree := twice("[1]", "[a, a]", 60)  // 2^60 nested elements
	flat := twice("[[1]]", "a + a", 60) // a list of 2^60 elements
	return []string{
		tree + " == " + tree,
		tree + " != " + tree,
		tree + " in [" + tree + "]",
		"[" + tree + "].indexOf(" + tree + ")",
		"[" + tree + "].includes(" + tree + ")",
		"sets.contains([" + tree + "], [" + tree + "])",
		"sets.equivalent([" + tree + "], [" + tree + "])",
		"[" + tree + ", " + tree + "].distinct()",
		tree + ".flatten(60)",
		"dyn(" + tree + ").max()",
		"dyn(" + tree + ").isSorted()",
		"dyn(" + tree + ").includes(1)",
		"dyn(" + twice("[dyn([])]", "[a, a]", 60) + ").lastIndexOf(1)", // empty lists have no cost
		"[" + tree + "].all(t, lists.range(200000).all(i, t != []))",
		"[" + tree + "].all(t, lists.range(200000).all(i, [t] != [t]))",
		"[" + tree + "].all(t, lists.range(200000).all(i, t in [t]))",
		"[" + tree + "].all(t, lists.range(200000).all(i, sets.contains([t], [t])))",
		"[" + tree + "].all(t, lists.range(200000).all(i, [t].distinct() == []))",
		"[many.map(x, x)].all(t, many.all(i, [t] == [t]))",
		"[many.map(x, x)].all(t, many.all(i, {'a': t} == {'a': t}))",
		"[many.map(x, x)].all(t, many.all(i, sets.contains([t], [t])))",
		"[many.map(x, x)].all(t, many.all(i, [t, t].distinct() == []))",
		"[many.map(x, x)].all(t, many.all(i, [t] in [[t]]))",
		"many.all(i, 'a'.matches('" + strings.Repeat("x{1000}", 100) + "' + string(i)) || true)",
		"many.all(i, 'a'.find('" + strings.Repeat("x{1000}", 100) + "' + string(i)) == '' || true)",
		"many.all(i, big.size() > 0)",
		"many.all(i, big.charAt(0) == 'a')",
		"many.all(i, big != 'a')",
		"many.all(i, int(big) > 0 || true)",
		"many.all(i, timestamp(big) > timestamp(big) || true)",
		"many.all(i, '%s'.format([big]) != 'a')",
		"many.all(i, [big] == [bee])",
		"many.all(i, big in [bee])",
		"[url('http://x/' + big)].all(u, many.all(i, u == u))",
		"[url('http://x/' + big)].all(u, many.all(i, u.getEscapedPath() != ''))",
		"[quantity(digits.substring(0, 9000))].all(q, many.all(i, !q.isLessThan(q)))",
		"'%s'.format([" + tree + "])",
		"{'a': " + tree + "} == {'a': " + tree + "}",
		"optional.of(" + tree + ") == optional.of(" + tree + ")",
		flat + "[0].size()",
		flat + "[0].sum()",
		flat + "[0].sort()",
		flat + "[0].reverse()",
		flat + "[0].map(x, x)",
		"big.replace('', big)",
		"big.replace('a', big)",
		"big.replace('a', big, 100000)",
		"lists.range(20000).map(i, big).join()",
		"lists.range(20000).map(i, big).join(big)",
		"'" + strings.Repeat("%s", 3000) + "'.format([" + strings.Repeat("big, ", 2999) + "big])",
		"'" + strings.Repeat("%.999999f", 3000) + "'.format([" + strings.Repeat("1.0, ", 2999) + "1.0])",
		"'%.99999999999999999999999f'.format([1.0])",
		"bee.matches('" + strings.Repeat("(a*)*", 2000) + "$')",
		"bee.matches('" + strings.Repeat("(a*)*", 2000) + "' + '$')",
		"bee.find('" + strings.Repeat("(a?){100}", 50) + "c')",
		"bee.findAll('" + strings.Repeat("(a?){100}", 50) + "' + 'c')",
		"big.indexOf(half)",
		"big.lastIndexOf(half)",
		"lists.range(1000000).all(a, lists.range(1000000).all(b, a == b || a != b))",
		"sets.intersects(many, many.map(x, x + 100000000))",
		"many.distinct()",
		"many.all(a, many.all(b, many.all(c, true)))",
		"many.all(a, a >= 0)",
		"many.exists(a, a < 0)",
		"many.exists_one(a, a < 0)",
		"many.map(a, a).size()",
		"many.map(a, a > 5, a).size()",
		"many.filter(a, a > 5).size()",
		"many.filter(a, true).size()",
		"many.filter(a, false).size()",
		"many.exists_one(a, true)",
		"many.all(i, a, i == a)",
		"many.transformList(i, a, a).size()",
		"many.transformMap(i, a, a).size()",
		"many.all(a, [a].all(b, b >= 0))",
		"quantity(digits).isLessThan(quantity('1'))",
		"isQuantity(digits)",
		"quantity('1e999999999').isLessThan(quantity('1.5'))",
		"quantity('1e999999999').add(quantity('1.5')) == quantity('1')",
		"quantity('1e999999999') == quantity('1.5')",
		"quantity('1e999999999').asApproximateFloat() > 0.0",
		twice("[big]", "a + a", 40),
		"format.uri().validate(big).hasValue() && many.all(x, format.uri().validate(big).hasValue())",
	}
}

// hostileEnvironment returns an environment with the variables of the hostile expressions.
func hostileEnvironment(t testing.TB) (*cel.Environment, celgo.Activation) {
	base, err := cel.New(cel.Stored)
	if err != nil {
		t.Fatal(err)
	}
	const most = cel.MaxRequestSize
	env, err := base.Extend([]cel.Variable{
		{Name: "big", Type: cel.String(most)}, {Name: "half", Type: cel.String(most)}, {Name: "bee", Type: cel.String(most)},
		{Name: "digits", Type: cel.String(most)}, {Name: "many", Type: cel.List(cel.Int(), most/2)},
	})
	if err != nil {
		t.Fatal(err)
	}
	many := make([]any, 200_000)
	for i := range many {
		many[i] = int64(i)
	}
	vars, err := celgo.NewActivation(map[string]any{
		"big": strings.Repeat("a", most), "half": strings.Repeat("a", most/2-1) + "b", "bee": strings.Repeat("a", most-1) + "b",
		"digits": "0." + strings.Repeat("3", most-2), "many": many,
	})
	if err != nil {
		t.Fatal(err)
	}
	return env, vars
}

// TestHostile evaluates hostile expressions. Each ends by its cost or by an error before the test ends, and with little memory.
func TestHostile(t *testing.T) {
	env, vars := hostileEnvironment(t)
	for _, expression := range hostile() {
		name := expression
		if len(name) > 60 {
			name = name[:30] + "..." + name[len(name)-30:]
		}
		t.Run(name, func(t *testing.T) {
			program, err := env.Compile(expression)
			if err != nil {
				return // refused
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, remaining, err := program.Eval(context.Background(), vars, cel.MaxObjectCost)
			runtime.ReadMemStats(&after)
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 1200 { // total of all allocations; it is more with the race detector
				t.Errorf("allocated %d MiB", used)
			}
			if err == nil && cel.MaxObjectCost-remaining > cel.MaxCallCost {
				t.Errorf("cost %d, but was not stopped", cel.MaxObjectCost-remaining)
			}
		})
	}
}

// TestInterrupt ends evaluations by the context.
func TestInterrupt(t *testing.T) {
	env, vars := hostileEnvironment(t)
	program, err := env.Compile("many.all(a, a >= 0)", celgo.BoolType)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("the client has gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	_, remaining, err := program.Eval(ctx, vars, cel.MaxObjectCost)
	if !errors.Is(err, cel.ErrInterrupted) || !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if spent := cel.MaxObjectCost - remaining; spent <= 0 || spent > 5000 {
		t.Errorf("spent %d", spent)
	}
}
