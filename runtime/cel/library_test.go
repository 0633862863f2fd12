package cel_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/keelson-dev/keelson/runtime/cel"
	"github.com/keelson-dev/keelson/runtime/cel/internal/library"
)

// first is the version in which most functions exist already.
const first cel.Version = 23

// TestFunctions evaluates each function in the version that added it. It checks the result and the cost, and that the version
// before does not have the function.
func TestFunctions(t *testing.T) {
	envs := map[cel.Version]*cel.Environment{}
	env := func(v cel.Version) *cel.Environment {
		if envs[v] == nil {
			envs[v] = environment(t, v)
		}
		return envs[v]
	}
	vars := activation(t)
	for _, test := range []struct {
		since      cel.Version
		expression string
		want       string // or a part of the error
		cost       uint64
	}{
		{first, "[1, 3, 2].isSorted()", "bool false", 3},
		{first, "[1, 3, 2].sum()", "int 6", 3},
		{first, "[9223372036854775807, 1].sum()", "integer overflow", 2},
		{first, "[1, 3, 2].min()", "int 1", 3},
		{first, "[1, 3, 2].max()", "int 3", 3},
		{first, "[].max()", "max called on empty list", 0},
		{first, "[1, 2, 2].indexOf(2)", "int 1", 3},
		{first, "[1, 2, 2].lastIndexOf(2)", "int 2", 3},
		{37, "[1, 2].includes(2)", "bool true", 2},
		{37, "'a'.includes('b')", "bool false", 0},
		{first, "'abc 123'.find('[0-9]+')", `"123"`, 2},
		{first, "'1 2 3'.findAll('[0-9]')", `["1", "2", "3"]`, 2},
		{first, "'1 2 3'.findAll('[0-9]', 2)", `["1", "2"]`, 2},
		{first, "'1'.find(self.s + '(')", "Illegal regex: error parsing regexp: missing closing ): `hello, wörld(`", 8},
		{first, "url('https://a.b:80/c%20d?e=f').getHost()", `"a.b:80"`, 4},
		{first, "url('https://a.b:80/c%20d?e=f').getEscapedPath()", `"/c%20d"`, 4},
		{first, "url('https://a.b:80/?e=f&e=g').getQuery()", `{"e": ["f", "g"]}`, 4},
		{first, "url('a b')", `URL parse error during conversion from string: parse "a b": invalid URI for request`, 1},
		{first, "isURL('../a')", "bool false", 1},
		{27, "authorizer.path('/healthz').check('get').allowed()", "bool true", 350003},
		{27, "authorizer.group('apps').resource('deployments').subresource('status').namespace('n').name('m').check('deny').reason()",
			`"jane deny||apps|deployments|status|n|m|true|0 false|0 false"`, 350007},
		{27, "authorizer.serviceAccount('ns', 'sa').path('/x').check('fail').error()", `"failed"`, 350004},
		{27, "authorizer.serviceAccount('ns', '-')", "Invalid service account name", 2},
		{27, "authorizer.path(' ')", "path must not be empty", 2},
		{27, "authorizer.requestResource.check('fail').errored()", "bool true", 350002},
		{31, "authorizer.requestResource.fieldSelector('a=b').labelSelector('c,d').check('list').reason()",
			`"jane list||apps|deployments||default|web|true|1 false|2 false"`, 350224},
		{28, "quantity('1.5k').compareTo(quantity('1500'))", "int 0", 3},
		{28, "quantity('1k').add(500).sub(quantity('1')).asInteger()", "int 1499", 5},
		{28, "sign(quantity('-1'))", "int -1", 2},
		{28, "quantity('1k').isGreaterThan(quantity('1Ki'))", "bool false", 3},
		{28, "quantity('1.5').asInteger()", "cannot convert value to integer", 2},
		{28, "quantity('1.5').isInteger()", "bool false", 2},
		{28, "quantity('1.5').asApproximateFloat()", "double 1.5", 2},
		{28, "isQuantity('1K')", "bool false", 1},
		{28, "quantity('x')", "quantities must match the regular expression", 1},
		{28, "quantity('2') == quantity('1').add(1)", "no such overload", 4},
		{28, "quantity('1').add(1) == quantity('2')", "bool true", 4},
		{28, "self.?s.orValue('')", `"hello, wörld"`, 2},
		{28, "optional.of(1).hasValue()", "bool true", 2},
		{28, "1 < 1.5", "bool true", 1},
		{29, "'a'.replace('a', 'b') + strings.quote('c')", `"b\"c\""`, 3},
		{first, "'b'.replace('b', 'c').upperAscii()", `"C"`, 2},
		{first, "['a', 'b'].join('-')", `"a-b"`, 1},
		{29, "'%d %s'.format([1, 'a'])", `"1 a"`, 1},
		{29, "sets.contains([1, 2], [1])", "bool true", 3},
		{29, "sets.equivalent([1], [1, 1])", "bool true", 5},
		{29, "sets.intersects([1], [2])", "bool false", 2},
		{30, "ip('::1').family()", "int 6", 2},
		{30, "ip('127.0.0.1').isLoopback() && !ip('10.0.0.1').isUnspecified()", "bool true", 5},
		{30, "ip('169.254.0.1').isLinkLocalUnicast() && ip('224.0.0.1').isLinkLocalMulticast()", "bool true", 5},
		{30, "ip('8.8.8.8').isGlobalUnicast()", "bool true", 2},
		{30, "ip.isCanonical('::0')", "bool false", 1},
		{30, "isIP('fe80::1%eth0')", "bool false", 2},
		{30, "ip('::ffff:1.2.3.4')", `IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed`, 2},
		{30, "string(ip('2001:DB8::1'))", `"2001:db8::1"`, 3},
		{30, "cidr('10.0.0.0/8').containsIP('10.1.2.3')", "bool true", 3},
		{30, "cidr('10.0.0.0/8').containsIP('x')", "no such overload", 3},
		{30, "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", "bool true", 6},
		{30, "cidr('10.0.0.0/8').containsCIDR('x')", "network address parse error", 5},
		{30, "string(cidr('10.1.2.3/8').masked()) + string(cidr('10.1.2.3/8').ip())", `"10.0.0.0/810.1.2.3"`, 8},
		{30, "cidr('10.1.2.3/8').prefixLength()", "int 8", 2},
		{30, "isCIDR('10.0.0.0')", "bool false", 1},
		{31, "format.dns1123Label().validate('A').value().size()", "int 1", 11},
		{31, "format.named('uuid').hasValue() && !format.named('x').hasValue()", "bool true", 5},
		{31, "format.date().validate('2024-02-29')", "none", 37},
		{32, "{'a': 1}.transformMap(k, v, v + 1)", `{"a": int 2}`, 6},
		{32, "['a'].all(i, v, i == 0 && v == 'a')", "bool true", 8},
		{33, "semver('1.2.3').isLessThan(semver('v1.3', true))", "bool true", 3},
		{33, "semver('1.2.3').major() + semver('1.2.3').minor() + semver('1.2.3').patch()", "int 6", 8},
		{33, "isSemver('v1')", "bool false", 1},
		{33, "semver('1')", "No Major.Minor.Patch elements found", 1},
		{34, "[[1], [2]].flatten()", "[int 1, int 2]", 13},
		{34, "lists.range(3)", "[int 0, int 1, int 2]", 14},
		{34, "[3, 1].sort().reverse().slice(0, 1)", "[int 3]", 44},
		{34, "['b', 'a'].sortBy(x, x)", `["a", "b"]`, 48},
		{34, "[1, 1].distinct()", "[int 1]", 19},
		{28, "[1].first().value() + [1].last().value()", "int 2", 5},
	} {
		got := run(env(test.since), test.expression, vars)
		if got.Fault != "" {
			t.Errorf("%s: %s", test.expression, got.Fault)
			continue
		}
		if got.Result != test.want && (got.Error == "" || !strings.Contains(got.Error, test.want)) || got.Cost != test.cost {
			t.Errorf("%s: got %s%s for %d, want %s for %d", test.expression, got.Result, got.Error, got.Cost, test.want, test.cost)
		}
		if test.since == first {
			continue
		}
		before := run(env(test.since-1), test.expression, vars)
		unknown := []string{"undeclared reference", "found no matching overload", "unsupported syntax", "unexpected failed resolution"}
		if !slices.ContainsFunc(unknown, func(s string) bool { return strings.Contains(before.Fault, s) }) {
			t.Errorf("%s in %v: got %+v", test.expression, test.since-1, before)
		}
	}
}

// TestReturns compiles expressions with a wanted type.
func TestReturns(t *testing.T) {
	env := environment(t, cel.Compatible)
	for _, test := range []struct {
		expression string
		want       []*celgo.Type
		fault      string
		stage      cel.Stage
	}{
		{"true", []*celgo.Type{celgo.BoolType}, "", 0},
		{"1", []*celgo.Type{celgo.BoolType}, "must evaluate to bool but got int", cel.Returning},
		{"x", []*celgo.Type{celgo.BoolType}, "must evaluate to bool but got dyn", cel.Returning},
		{"1", []*celgo.Type{celgo.BoolType, celgo.StringType}, "must evaluate to one of [bool string] but got int", cel.Returning},
		{"1", []*celgo.Type{celgo.StringType, celgo.AnyType}, "", 0},
		{"1", nil, "", 0},
		{"1 +", nil, "compilation failed: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting", cel.Checking},
		{"[1].includes(1)", nil, "compilation failed: ERROR: <input>:1:13: undeclared reference to 'includes' (in container '')\n" +
			" | [1].includes(1)\n | ............^", cel.Checking},
		{"'a'.find('(')", nil, "program instantiation failed: error parsing regexp: missing closing ): `(`", cel.Planning},
	} {
		program, err := env.Compile(test.expression, test.want...)
		if test.fault == "" {
			if err != nil || program == nil {
				t.Errorf("%s: %v", test.expression, err)
			}
			continue
		}
		var fault *cel.CompileError
		if !errors.As(err, &fault) || !strings.HasPrefix(err.Error(), test.fault) || fault.Stage != test.stage {
			t.Errorf("%s: got %v", test.expression, err)
		}
	}
}

// TestReferences checks which variables an expression references.
func TestReferences(t *testing.T) {
	program, err := environment(t, cel.Compatible).Compile("self.ls.all(x, x == 'a') || oldSelf.hasValue()")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"self": true, "oldSelf": true, "authorizer": false} {
		if got := program.References(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// TestBudget checks that the cost of each evaluation is taken from the budget, even if the evaluation fails.
func TestBudget(t *testing.T) {
	env, vars := environment(t, cel.Compatible), activation(t)
	eval := func(expression string, budget int64) (int64, error) {
		program, err := env.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		_, remaining, err := program.Eval(context.Background(), vars, budget)
		return remaining, err
	}
	if left, err := eval("self.i == 42", 10); left != 7 || err != nil {
		t.Errorf("got %d, %v", left, err)
	}
	if left, err := eval("self.i == 42", 3); left != 0 || err != nil {
		t.Errorf("exactly: got %d, %v", left, err)
	}
	if left, err := eval("self.i == 42", 2); left != -1 || !errors.Is(err, cel.ErrBudget) {
		t.Errorf("too little: got %d, %v", left, err)
	}
	if left, err := eval("true", 0); left != -1 || !errors.Is(err, cel.ErrBudget) {
		t.Errorf("nothing: got %d, %v", left, err)
	}
	left, err := eval("self.m.none == ''", 10)
	if left != 7 || err == nil || err.Error() != "no such key: none" || errors.Is(err, cel.ErrBudget) || errors.Is(err, cel.ErrCallCost) {
		t.Errorf("failed: got %d, %v", left, err)
	}
	left, err = eval("authorizer.path('/').check('a').allowed() && authorizer.path('/').check('b').allowed() && "+
		"authorizer.path('/').check('c').allowed()", cel.MaxObjectCost)
	if !errors.Is(err, cel.ErrCallCost) || err.Error() != cel.ErrCallCost.Error() || left >= cel.MaxObjectCost-cel.MaxCallCost {
		t.Errorf("too much: got %d, %v", left, err)
	}
}

// TestConcurrent evaluates one program many times concurrently.
func TestConcurrent(t *testing.T) {
	env, vars := environment(t, cel.Stored), activation(t)
	program, err := env.Compile("self.ls.all(e, e.matches('[a-z]')) && self.s.find('l+') == 'll' && [self.i].sum() == 42 && "+
		"quantity('1k') == quantity('1000')", celgo.BoolType)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	costs := make([]int64, 8)
	for i := range costs {
		group.Go(func() {
			for range 50 {
				result, left, err := program.Eval(context.Background(), vars, cel.MaxObjectCost)
				if err != nil || result != types.True {
					t.Errorf("got %v, %v", result, err)
				}
				costs[i] = left
			}
		})
	}
	group.Go(func() { // compiles concurrently with the evaluations
		for range 20 {
			if _, err := env.Compile("self.li.map(e, e * 2).sum() > 3"); err != nil {
				t.Error(err)
			}
		}
	})
	group.Wait()
	if len(slices.Compact(costs)) != 1 {
		t.Errorf("costs differ: %v", costs)
	}
}

// TestContext checks that a checker gets the context of the request.
func TestContext(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(context.Background(), key{}, "it")
	var got any
	value := library.NewAuthorizer(ctx, func(ctx context.Context, _ library.Check) library.Decision {
		got = ctx.Value(key{})
		return library.Decision{}
	})
	program, err := environment(t, cel.Compatible).Compile("authorizer.path('/').check('get').allowed()", celgo.BoolType)
	if err != nil {
		t.Fatal(err)
	}
	vars, err := celgo.NewActivation(map[string]any{"authorizer": value})
	if err != nil {
		t.Fatal(err)
	}
	if result, _, err := program.Eval(ctx, vars, cel.MaxObjectCost); err != nil || result != types.False || got != "it" {
		t.Errorf("got %v, %v, %v", result, err, got)
	}
}

func TestEscape(t *testing.T) {
	for property, name := range map[string]string{
		"a": "a", "a_b": "a_b", "a__b": "a__underscores__b", "a___b": "a__underscores___b", "a.b": "a__dot__b", "a-b": "a__dash__b",
		"a/b": "a__slash__b", "namespace": "__namespace__", "in": "__in__", "namespaces": "namespaces", "_": "_", "__": "__underscores__",
		"x-kubernetes.io/a": "x__dash__kubernetes__dot__io__slash__a", "A9": "A9", "int": "int",
	} {
		got, ok := cel.Escape(property)
		if !ok || got != name {
			t.Errorf("%s: got %s, %v", property, got, ok)
		}
		if back, ok := cel.Unescape(name); !ok || back != property {
			t.Errorf("%s: back is %s, %v", name, back, ok)
		}
	}
	for _, property := range []string{"", "1a", "a b", "é", "a$", "a\x00"} {
		if got, ok := cel.Escape(property); ok {
			t.Errorf("%q: got %s", property, got)
		}
	}
	for _, name := range []string{"a__nope__b", "a__in__", "__in__a"} {
		if got, ok := cel.Unescape(name); ok {
			t.Errorf("%s: back is %s", name, got)
		}
	}
}

func TestNamed(t *testing.T) {
	inner := func() *cel.DeclType {
		return cel.Object("", map[string]*cel.DeclField{"x": {Name: "x", Type: cel.Int()}})
	}
	root := cel.Object("", map[string]*cel.DeclField{
		"o": {Name: "o", Type: inner()}, "l": {Name: "l", Type: cel.List(inner(), 3)},
		"m": {Name: "m", Type: cel.Map(cel.String(0), cel.List(inner(), 2), 4)},
		"n": {Name: "n", Type: cel.Object("kubernetes.Named", nil)},
	}).Named("root")
	for got, want := range map[string]string{
		root.Name(): "root", root.Fields["o"].Type.Name(): "root.o", root.Fields["l"].Type.Elem.Name(): "root.l.@idx",
		root.Fields["m"].Type.Elem.Elem.Name(): "root.m.@elem.@idx", root.Fields["n"].Type.Name(): "kubernetes.Named",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if root.Fields["m"].Type.MaxElements != 4 || root.Fields["m"].Type.Type().String() != "map(string, list(root.m.@elem.@idx))" {
		t.Errorf("got %v", root.Fields["m"].Type.Type())
	}
	if root.Named("other") != root {
		t.Error("named again")
	}
}
