package cel

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
)

// cel-go counts costs with a stack of evaluated expressions. Each step of a comprehension leaves entries on the stack, which are
// removed only at the end of the comprehension. Each read of a variable searches the whole stack in vain. So the running time of
// a comprehension grows with the square of the length of its list, and it takes minutes before the cost limit ends it.
//
// When a variable is read, cel-go looks for an entry with the id of the variable, and removes the entries above it. There is
// never such an entry. So the first variable that each step reads gets the id of the entry that the step before has left.

// leftovers reports whether an expression has comprehensions. It returns, by the id of the variable that a step of a comprehension
// reads first, the id of the entry that a step leaves.
func leftovers(checked *ast.AST) (loops bool, found map[int64]int64) {
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.ComprehensionKind {
			return
		}
		loops = true
		c := e.AsComprehension()
		// The condition is evaluated first in a step. A constant condition reads nothing; then the expression for the result is
		// first.
		of := c.LoopCondition()
		if of.Kind() == ast.LiteralKind {
			of = c.LoopStep()
		}
		if id, ok := firstRead(of); ok {
			if found == nil {
				found = make(map[int64]int64)
			}
			found[id] = of.ID()
		}
	}))
	return loops, found
}

// firstRead returns the id of the variable if a variable is the first thing that an expression evaluates.
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
				branch := 1 // the branch that the constant does not select is never evaluated
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

// tidy returns a decorator that gives the variables in found the ids of the entries to remove.
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

// firstInStep is the read of a variable that comes first in a step.
type firstInStep struct {
	interpreter.InterpretableAttribute
	left int64
}

// Attr implements interpreter.InterpretableAttribute. Where costs are counted, only the id of the result is used.
func (f firstInStep) Attr() interpreter.Attribute {
	return otherID{f.InterpretableAttribute.Attr(), f.left}
}

// otherID is an attribute with a different id.
type otherID struct {
	interpreter.Attribute
	id int64
}

// ID implements interpreter.Qualifier.
func (o otherID) ID() int64 { return o.id }
