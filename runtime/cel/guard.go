package cel

import (
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"github.com/keelson-dev/keelson/runtime/cel/internal/library"
)

// cel-go counts the cost of a call after the call, and counts a nested list as one element. Both allow a short expression to run
// for a very long time without a chance to interrupt it: a list that contains itself twice, forty levels deep, has 2^40 elements
// to compare. So library.TooMuch checks calls whose arguments can be very large before they are made. If it refuses a call, the
// evaluation ends as if the cost limit were exceeded.

// guardOverloads declares functions again, with a check of the arguments before each call.
func guardOverloads(env *celgo.Env) ([]celgo.EnvOption, error) {
	var opts []celgo.EnvOption
	for name, f := range env.Functions() {
		if !library.Guarded(name) || f.HasSingletonBinding() {
			continue
		}
		bindings, err := f.Bindings()
		if err != nil {
			return nil, err
		}
		byID := make(map[string]*functions.Overload, len(bindings))
		for _, b := range bindings {
			byID[b.Operator] = b
		}
		var again []celgo.FunctionOpt
		for _, o := range f.OverloadDecls() {
			if b := byID[o.ID()]; b != nil && o.HasBinding() {
				again = append(again, guardOverload(name, o, b))
			}
		}
		if name == "flatten" { // flatten checks the types of its arguments itself
			again = append(again, decls.DisableTypeGuards(true))
		}
		opts = append(opts, celgo.Function(name, again...))
	}
	return opts, nil
}

// guardOverload returns the overload with a check. The binding must be of the same kind (unary, binary or general) as the
// original. The kind decides whether all arguments are evaluated when the first is an error, and so it decides the cost.
func guardOverload(function string, o *decls.OverloadDecl, b *functions.Overload) celgo.FunctionOpt {
	id := o.ID()
	check := func(args ...ref.Val) {
		if library.TooMuch(function, id, args) {
			library.Stop()
		}
	}
	var binding celgo.OverloadOpt
	switch {
	case b.Unary != nil:
		binding = celgo.UnaryBinding(func(v ref.Val) ref.Val { check(v); return b.Unary(v) })
	case b.Binary != nil:
		binding = celgo.BinaryBinding(func(v, w ref.Val) ref.Val { check(v, w); return b.Binary(v, w) })
	default:
		binding = celgo.FunctionBinding(func(args ...ref.Val) ref.Val { check(args...); return b.Function(args...) })
	}
	opts := []celgo.OverloadOpt{binding, celgo.OverloadOperandTrait(o.OperandTrait())}
	if o.IsMemberFunction() {
		return celgo.MemberOverload(id, o.ArgTypes(), o.ResultType(), opts...)
	}
	return celgo.Overload(id, o.ArgTypes(), o.ResultType(), opts...)
}

// guardOperators returns an option that adds the check to operators, whose declarations cannot be replaced. It needs the
// functions that the operators are bound to.
func guardOperators(env *celgo.Env) (celgo.ProgramOption, error) {
	bound := map[string]*functions.Overload{
		operators.Equals: {Binary: types.Equal},
		operators.NotEquals: {Binary: func(v, w ref.Val) ref.Val {
			return types.Bool(types.Equal(v, w) != types.True)
		}},
	}
	for _, name := range []string{operators.In, overloads.Matches} {
		bindings, err := env.Functions()[name].Bindings()
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			if b.Operator == name && b.Binary != nil && !b.NonStrict {
				bound[name] = b
			}
		}
		if bound[name] == nil {
			return nil, fmt.Errorf("cel-go binds %s otherwise than expected", name)
		}
	}
	return celgo.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok || len(call.Args()) != 2 {
			return i, nil
		}
		if call.Function() == operators.Add {
			return sum{call}, nil
		}
		if op, ok := bound[call.Function()]; ok {
			return operation{call, call.Args()[0], call.Args()[1], op}, nil
		}
		return i, nil
	}), nil
}

// operation is a call of an operator with two arguments.
type operation struct {
	interpreter.InterpretableCall
	left, right interpreter.InterpretableV2
	bound       *functions.Overload
}

// Exec is of interpreter.InterpretableV2.
func (o operation) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	left, right := o.left.Exec(frame), o.right.Exec(frame)
	if types.IsUnknownOrError(left) {
		return left
	}
	if types.IsUnknownOrError(right) {
		return right
	}
	if library.TooMuch(o.Function(), o.OverloadID(), []ref.Val{left, right}) {
		library.Stop()
	}
	if o.bound.OperandTrait != 0 && !left.Type().HasTrait(o.bound.OperandTrait) {
		return types.NewErrWithNodeID(o.ID(), "no such overload: %s", o.Function())
	}
	return types.LabelErrNode(o.ID(), o.bound.Binary(left, right))
}

// Eval implements interpreter.Interpretable.
func (o operation) Eval(vars interpreter.Activation) ref.Val {
	return o.Exec(interpreter.AsFrame(vars))
}

// sum is an addition. The sum of two lists is a view of both lists, so it is cheap to make but not to read.
type sum struct{ interpreter.InterpretableCall }

// Exec is of interpreter.InterpretableV2.
func (s sum) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := s.InterpretableCall.Exec(frame)
	if list, ok := v.(traits.Lister); ok {
		if n, ok := list.Size().(types.Int); !ok || n > library.MaxElements {
			library.Stop()
		}
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (s sum) Eval(vars interpreter.Activation) ref.Val { return s.Exec(interpreter.AsFrame(vars)) }
