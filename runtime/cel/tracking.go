package cel

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
)

// cel-go counts costs with a stack of what has been evaluated. What a comprehension leaves on it in each step is taken off
// only at its end, and it is searched in vain whenever a variable is read, so that the time of a comprehension grows with the
// square of its list: minutes before it has cost too much. But when a variable is read, what is above an entry is taken off
// the stack by the id of the variable, which is never there. So the variable that is read first in each step is given the id of
// what the step before has left.

// leftovers are, by the ids of the variables that are read first in a step of a comprehension, the ids of what is left.
func leftovers(checked *ast.AST) map[int64]int64 {
	found := make(map[int64]int64)
	for _, e := range ast.MatchDescendants(ast.NavigateAST(checked), ast.KindMatcher(ast.ComprehensionKind)) {
		c := e.AsComprehension()
		// The condition comes first in a step. One that is a constant reads nothing; then it is what makes the result.
		of := c.LoopCondition()
		if of.Kind() == ast.LiteralKind {
			of = c.LoopStep()
		}
		if id, ok := firstRead(of); ok {
			found[id] = of.ID()
		}
	}
	return found
}

// loops says whether an expression has comprehensions.
func loops(checked *ast.AST) bool {
	return len(ast.MatchDescendants(ast.NavigateAST(checked), ast.KindMatcher(ast.ComprehensionKind))) > 0
}

// firstRead is the variable that is evaluated before anything else in an expression.
func firstRead(e ast.Expr) (int64, bool) {
	for {
		switch e.Kind() {
		case ast.IdentKind:
			return e.ID(), true
		case ast.SelectKind:
			if e.AsSelect().IsTestOnly() {
				return 0, false
			}
			e = e.AsSelect().Operand()
		case ast.CallKind:
			call := e.AsCall()
			switch {
			case call.FunctionName() == operators.Conditional && call.Args()[0].Kind() == ast.LiteralKind:
				branch := 1 // what the constant has left is of no use to anybody
				if call.Args()[0].AsLiteral() != types.True {
					branch = 2
				}
				e = call.Args()[branch]
			case call.IsMemberFunction():
				e = call.Target()
			case len(call.Args()) > 0:
				e = call.Args()[0]
			default:
				return 0, false
			}
		case ast.ListKind:
			if e.AsList().Size() == 0 {
				return 0, false
			}
			e = e.AsList().Elements()[0]
		case ast.ComprehensionKind:
			e = e.AsComprehension().IterRange()
		default:
			return 0, false
		}
	}
}

// tidy has those variables take what is left off the stack.
func tidy(found map[int64]int64) interpreter.InterpretableDecoratorV2 {
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if read, ok := i.(interpreter.InterpretableAttribute); ok {
			if id, ok := found[read.ID()]; ok {
				return firstInStep{read, id}, nil
			}
		}
		return i, nil
	}
}

// firstInStep is a variable that is read first in a step.
type firstInStep struct {
	interpreter.InterpretableAttribute
	left int64
}

// Attr is of interpreter.InterpretableAttribute: only its id is asked for where costs are counted.
func (f firstInStep) Attr() interpreter.Attribute {
	return otherID{f.InterpretableAttribute.Attr(), f.left}
}

// otherID is an attribute with another id.
type otherID struct {
	interpreter.Attribute
	id int64
}

// ID is of interpreter.Qualifier.
func (o otherID) ID() int64 { return o.id }
