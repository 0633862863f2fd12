// Package plain compiles and evaluates expressions whose variables and results are plain values, as package encoding/json makes
// them of JSON: the expressions of configuration files, such as those about the claims of a token. Its callers need not know the
// library that evaluates.
//
//	env, err := plain.New(cel.Compatible, []cel.Variable{{Name: "claims", Type: plain.AnyFields()}})
//	rule, err := env.Compile("claims.hd == 'example.com'")
//	value, left, err := rule.Eval(ctx, map[string]any{"claims": claims}, cel.MaxObjectCost)
package plain

import (
	"context"
	"fmt"
	"math"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/keelson-dev/keelson/runtime/cel"
)

// Environment is a set of variables. It may be used concurrently.
type Environment struct {
	env   *cel.Environment
	parse *celgo.Env
}

// New returns an environment of a version with variables. It takes milliseconds.
func New(version cel.Version, variables []cel.Variable) (*Environment, error) {
	base, err := cel.New(version)
	if err != nil {
		return nil, err
	}
	env, err := base.Extend(variables)
	if err != nil {
		return nil, err
	}
	parse, err := celgo.NewEnv(celgo.OptionalTypes())
	if err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	return &Environment{env, parse}, nil
}

// Compile compiles an expression. The error is a *cel.CompileError.
func (e *Environment) Compile(expression string) (*Program, error) {
	program, err := e.env.Compile(expression)
	if err != nil {
		return nil, err
	}
	return &Program{program}, nil
}

// Selects reports whether an expression selects a field of a variable by its name: as variable.field, variable.?field or
// has(variable.field). An expression that cannot be parsed selects nothing.
func (e *Environment) Selects(expression, variable, field string) bool {
	parsed, issues := e.parse.Parse(expression)
	if issues.Err() != nil {
		return false
	}
	found := false
	is := func(x ast.Expr) bool { return x.Kind() == ast.IdentKind && x.AsIdent() == variable }
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		switch x.Kind() {
		case ast.SelectKind:
			found = found || x.AsSelect().FieldName() == field && is(x.AsSelect().Operand())
		case ast.CallKind:
			call := x.AsCall()
			if call.FunctionName() == operators.OptSelect && len(call.Args()) == 2 && is(call.Args()[0]) && call.Args()[1].Kind() == ast.LiteralKind {
				found = found || call.Args()[1].AsLiteral().Equal(types.String(field)) == types.True
			}
		}
	}))
	return found
}

// Program is a compiled expression. It may be used concurrently.
type Program struct{ program *cel.Program }

// IsBool reports whether the expression is known to be true or false.
func (p *Program) IsBool() bool { return p.program.Type().IsExactType(celgo.BoolType) }

// Type returns the type of the expression as messages have it, such as "list(string)".
func (p *Program) Type() string { return p.program.Type().String() }

// Eval evaluates the expression with the values of the variables: nil, bool, int64, float64, string, []any, []string, map[string]any
// and map[string][]string. The result is of the first six types, with lists as []any; another value is returned as an [Other]. budget
// and remaining are as in [cel.Program.Eval].
func (p *Program) Eval(ctx context.Context, variables map[string]any, budget int64) (value any, remaining int64, err error) {
	vars, err := celgo.NewActivation(variables)
	if err != nil {
		return nil, budget, fmt.Errorf("cel: %w", err)
	}
	result, remaining, err := p.program.Eval(ctx, vars, budget)
	if err != nil {
		return nil, remaining, err
	}
	return plain(result, listDepth), remaining, nil
}

// Other is a result of a type that has no plain form here, or a list that is nested too deep.
type Other struct {
	Type string // name of its type
}

// listDepth bounds how deep a list may be nested in others.
const listDepth = 2

// value1 returns the plain form of a value.
func plain(v ref.Val, depth int) any {
	switch v := v.(type) {
	case types.Null:
		return nil
	case types.Bool:
		return bool(v)
	case types.Int:
		return int64(v)
	case types.Double:
		return float64(v)
	case types.String:
		return string(v)
	case traits.Lister:
		n, ok := v.Size().(types.Int)
		if !ok || depth == 0 || n > math.MaxInt32 {
			break
		}
		out := make([]any, 0, n)
		for i := range n {
			out = append(out, plain(v.Get(i), depth-1))
		}
		return out
	}
	return Other{v.Type().TypeName()}
}

// AnyFields returns the type of maps with strings for keys, such as the claims of a token. Their values are of no known type: an
// expression may compare them and select their fields and elements, but not iterate over them without a conversion such as dyn.
func AnyFields() *cel.DeclType {
	return cel.Map(cel.String(cel.Unbounded), cel.ScalarOf(celgo.AnyType, 1, cel.Unbounded), cel.Unbounded)
}
