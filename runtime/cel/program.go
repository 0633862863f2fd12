package cel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp/syntax"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/keelson-dev/keelson/runtime/cel/internal/library"
	"github.com/keelson-dev/keelson/runtime/regexsize"
)

// Cost is a range of costs, in the units of [MaxCallCost]. Min and Max are the least and the greatest cost.
type Cost struct{ Min, Max uint64 }

// Program is a compiled expression. It may be used concurrently.
type Program struct {
	program    celgo.Program
	typ        *celgo.Type
	cost       Cost
	loops      bool // has comprehensions, which check the context
	references map[string]struct{}
	regexSize  int
}

// Compile checks an expression and makes a program of it. The type of the expression has to be one of want. Any type is accepted
// if want is empty or includes AnyType. An error is a *CompileError.
func (e *Environment) Compile(expression string, want ...*celgo.Type) (*Program, error) {
	checked, issues := e.env.Parse(expression)
	if issues.Err() != nil {
		return nil, &CompileError{Stage: Checking, Detail: issues.String()}
	}
	regexSize, constant := regexes(checked.NativeRep())
	if regexSize > MaxRegexSize { // before any of them is compiled
		return nil, &CompileError{Stage: Planning, Detail: "error parsing regexp: " + syntax.ErrLarge.String()}
	}
	if checked, issues = e.env.Check(checked); issues.Err() != nil {
		return nil, &CompileError{Stage: Checking, Detail: issues.String()}
	}
	typ := checked.OutputType()
	if !returns(typ, want) {
		return nil, wrongType(typ, want)
	}
	references := make(map[string]struct{})
	for _, r := range checked.NativeRep().ReferenceMap() {
		if r.Name != "" {
			references[r.Name] = struct{}{}
		}
	}
	costs := &library.Costs{Sizes: sizes(e.roots), ConstantPatterns: constant}
	options := []celgo.ProgramOption{celgo.CostTracking(costs), library.Efforts(), e.operators}
	loops, found := leftovers(checked.NativeRep())
	if len(found) > 0 {
		options = append(options, celgo.CustomDecoratorV2(tidy(found)))
	}
	program, err := e.planner.Program(checked, options...)
	if err != nil { // an expression that makes objects needs the types of the objects
		program, err = e.env.Program(checked, options...)
	}
	if err != nil {
		return nil, &CompileError{Stage: Planning, Detail: err.Error(), references: references}
	}
	estimate, err := e.env.EstimateCost(checked, costs)
	if err != nil {
		return nil, &CompileError{Stage: Estimating, Detail: err.Error(), references: references}
	}
	return &Program{program: program, typ: typ, cost: Cost(estimate), loops: loops, references: references, regexSize: regexSize}, nil
}

// regexes returns the number of instructions of all constant regular expressions of an expression, and whether all its regular
// expressions are constants.
func regexes(parsed *ast.AST) (size int, constant bool) {
	constant = true
	ast.PreOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		call := e.AsCall()
		switch call.FunctionName() {
		case "matches", "find", "findAll":
		default:
			return
		}
		at := 0
		if !call.IsMemberFunction() {
			at = 1
		}
		for i, arg := range call.Args() {
			literal := arg.Kind() == ast.LiteralKind
			if i == at && !literal {
				constant = false
			}
			if !literal {
				continue
			}
			if pattern, ok := arg.AsLiteral().(types.String); ok { // the string, or the constant that cel-go takes for one when it checks literals
				size += regexsize.Of(string(pattern))
			}
		}
	}))
	return size, constant
}

// returns reports whether typ is one of the wanted types.
func returns(typ *celgo.Type, want []*celgo.Type) bool {
	for _, w := range want {
		if typ.IsExactType(w) || w.IsExactType(celgo.AnyType) {
			return true
		}
	}
	return len(want) == 0
}

// Type returns the type of the expression.
func (p *Program) Type() *celgo.Type { return p.typ }

// RegexSize returns the approximate number of instructions of the constant regular expressions of the expression. An instruction
// takes about forty bytes.
func (p *Program) RegexSize() int { return p.regexSize }

// Cost returns the estimated cost of one evaluation. Max is the cost for the largest values that the types of the variables
// allow.
func (p *Program) Cost() Cost { return p.cost }

// References reports whether the expression uses the variable.
func (p *Program) References(variable string) bool {
	_, has := p.references[variable]
	return has
}

// Eval evaluates the expression with the values of variables. budget is the cost that this evaluation and later ones may have
// together. remaining is the budget minus the cost of this evaluation, whether the evaluation succeeded or failed. One evaluation
// costs at most about [MaxCallCost], even if the budget is larger.
//
// An error is an *EvalError. It wraps [ErrBudget] if the cost is more than the budget; then remaining is -1, and the caller
// should evaluate no further expression. It wraps [ErrCallCost] if the evaluation was stopped for its cost, and [ErrInterrupted]
// if the context ended, which is checked only inside of comprehensions.
func (p *Program) Eval(ctx context.Context, variables celgo.Activation, budget int64) (result ref.Val, remaining int64, err error) {
	if budget <= 0 {
		return nil, -1, &EvalError{text: ErrBudget.Error(), kind: ErrBudget}
	}
	var details *celgo.EvalDetails
	if p.loops {
		result, details, err = p.program.ContextEval(ctx, variables)
	} else {
		result, details, err = p.program.Eval(variables)
	}
	spent := details.ActualCost()
	if spent == nil {
		return nil, -1, &EvalError{text: fmt.Sprintf("runtime cost could not be calculated: %v", err), kind: ErrBudget, err: err}
	}
	if *spent > math.MaxInt64 || int64(*spent) > budget {
		return nil, -1, &EvalError{text: ErrBudget.Error(), kind: ErrBudget}
	}
	remaining = budget - int64(*spent)
	if err == nil {
		return result, remaining, nil
	}
	failure := &EvalError{text: err.Error()}
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		failure.kind = ErrCallCost
	case errors.Is(err, interpreter.InterruptError{}):
		failure.kind, failure.err = ErrInterrupted, context.Cause(ctx)
	}
	return nil, remaining, failure
}
