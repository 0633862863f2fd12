package plain_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/cel"
	"github.com/keelson-dev/keelson/runtime/cel/plain"
)

func newEnvironment(t *testing.T) *plain.Environment {
	t.Helper()
	env, err := plain.New(cel.Compatible, []cel.Variable{{Name: "claims", Type: plain.AnyFields()}})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestEval(t *testing.T) {
	env := newEnvironment(t)
	variables := map[string]any{"claims": map[string]any{"a": "x", "n": 1.5, "list": []any{"a", nil, []any{"b"}}, "none": nil, "map": map[string]any{"b": true}}}
	for text, want := range map[string]any{
		"claims.a":                 "x",
		"claims.n":                 1.5,
		"1 + 2":                    int64(3),
		"claims.map.b":             true,
		"claims.none":              nil,
		"claims.list":              []any{"a", nil, []any{"b"}},
		"[[[1]]]":                  []any{[]any{plain.Other{Type: "list"}}},
		"claims.map":               plain.Other{Type: "map"},
		"b'a'":                     plain.Other{Type: "bytes"},
		"claims.?x.orValue('d')":   "d",
		"'a,b'.split(',')":         []any{"a", "b"},
		"duration('1s')":           plain.Other{Type: "google.protobuf.Duration"},
		"dyn(claims.list).size()":  int64(3),
		"claims.a + '!' == 'x!'":   true,
		"type(claims.n) == double": true,
	} {
		program, err := env.Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, left, err := program.Eval(t.Context(), variables, cel.MaxObjectCost)
		if err != nil || !reflect.DeepEqual(got, want) || left > cel.MaxObjectCost {
			t.Errorf("%s: %#v, %d, %v; want %#v", text, got, left, err, want)
		}
	}
	program, err := env.Compile("claims.missing == 'x'")
	if err != nil {
		t.Fatal(err)
	}
	if _, left, err := program.Eval(t.Context(), variables, 100); err == nil || left >= 100 || !strings.Contains(err.Error(), "no such key") {
		t.Errorf("a claim that is missing: %d, %v", left, err)
	}
	if _, _, err := program.Eval(t.Context(), variables, 0); !errors.Is(err, cel.ErrBudget) {
		t.Errorf("without a budget: %v", err)
	}
}

func TestIsBool(t *testing.T) {
	env := newEnvironment(t)
	for text, want := range map[string]bool{"true": true, "claims.a == 1": true, "claims.a": false, "dyn(true)": false, "'a'": false} {
		program, err := env.Compile(text)
		if err != nil || program.IsBool() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	var failure *cel.CompileError
	if _, err := env.Compile("claims."); !errors.As(err, &failure) {
		t.Errorf("the error is %v", err)
	}
}

func TestSelects(t *testing.T) {
	env := newEnvironment(t)
	for text, want := range map[string]bool{
		"claims.email":                     true,
		"has(claims.email)":                true,
		"claims.?email.orValue('')":        true,
		"[1].map(x, claims.email)":         true,
		"f(claims.email).g":                true,
		"claims.email.x":                   true,
		"claims.x.email":                   false,
		"other.email":                      false,
		"claims['email']":                  false,
		"'claims.email'":                   false,
		"claims.email_verified":            false,
		"claims.":                          false,
		"[claims].map(c, c.email)":         false,
		"claims.a == claims.b.c + 'email'": false,
	} {
		if env.Selects(text, "claims", "email") != want {
			t.Errorf("%s: want %v", text, want)
		}
	}
}
