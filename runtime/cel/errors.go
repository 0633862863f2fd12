package cel

import (
	"errors"
	"fmt"

	celgo "github.com/google/cel-go/cel"
)

// Stage is the step at which a compilation failed.
type Stage int

const (
	// Checking is the parsing and the type check. The text of the error has a line for each fault, with its position.
	Checking Stage = iota
	// Returning means that the expression does not have a wanted type. [CompileError.Got] is the type that it has.
	Returning
	// Planning is the construction of the program. It fails for constants that cannot be converted, such as an invalid regular
	// expression.
	Planning
	// Estimating is the estimation of the cost.
	Estimating
)

// CompileError is the reason why an expression does not compile. The fault is always in the expression.
type CompileError struct {
	// Stage is the step that failed.
	Stage Stage
	// Detail is the message of cel-go, without the words that kube-apiserver puts before it. In the stage [Checking] it has a
	// line for each fault, with the position of the fault.
	Detail string
	// Got is the type of the expression in the stage [Returning], nil in other stages.
	Got *celgo.Type

	references map[string]struct{} // set in the stages after the type check
}

// References reports whether the expression uses the variable. It is known only if the type check succeeded: in the stages
// Planning and Estimating.
func (e *CompileError) References(variable string) bool {
	_, has := e.references[variable]
	return has
}

// Error returns the message of kube-apiserver for expressions in admission. A messageExpression in a schema, and an expression in
// a schema with an unwanted type, have other messages. The caller makes these messages from Stage and Detail.
func (e *CompileError) Error() string {
	switch e.Stage {
	case Checking:
		return "compilation failed: " + e.Detail
	case Planning:
		return "program instantiation failed: " + e.Detail
	case Estimating:
		return "cost estimation failed: " + e.Detail
	}
	return e.Detail
}

var (
	// ErrCallCost means that one evaluation would cost more than [MaxCallCost]. The error that wraps it has the text of cel-go,
	// which begins with "operation cancelled: actual cost limit exceeded".
	//
	// A call whose arguments can be much larger than the expression that made them is checked before it is made; the evaluation
	// ends with ErrCallCost if the call would take too long. kube-apiserver counts the cost of a call after the call, and counts
	// only the outermost level of its arguments. There a short expression can make a list that contains another list twice, which
	// contains a third list twice, and so on. Comparing such lists does not end in practice.
	//
	// Most of the refused calls would cost too much afterwards in kube-apiserver, too. The exceptions, which kube-apiserver would
	// accept if it could evaluate them, are:
	//
	//   - comparisons of two lists or maps that the expression made and that both have more than a million elements, counting
	//     nested elements
	//   - a few million comparisons of such elements in the functions of sets and in distinct
	//   - strings of more than 10 MB made by replace and format
	//   - a search for a string of a megabyte in another string
	//   - quantities of more than ten thousand digits or zeros
	ErrCallCost = errors.New("operation cancelled: actual cost limit exceeded")
	// ErrBudget means that an evaluation cost more than the remaining budget of the caller, or that no budget remained before the
	// evaluation. This is so whether the evaluation succeeded or failed.
	ErrBudget = errors.New("out of budget")
	// ErrInterrupted means that the context ended.
	ErrInterrupted = errors.New("operation interrupted")
)

// EvalError is the error of an evaluation. Its text is the text of cel-go alone: the text of the failed operation, such as "no
// such key: color" or "divide by zero". The caller adds the words around it, which are different for each field that has
// expressions.
//
// A few functions of cel-go panic on a dyn value of an unexpected type. The text is then "internal error:" and the name of a Go
// type, which is not the same name as in kube-apiserver.
type EvalError struct {
	text string
	kind error // one of the three errors above, or nil
	err  error // the cause: why the context ended
}

// Error returns the text.
func (e *EvalError) Error() string { return e.text }

// Unwrap returns ErrCallCost, ErrBudget or ErrInterrupted, if the error is one of them, and the reason why a context ended.
func (e *EvalError) Unwrap() []error {
	var all []error
	for _, err := range []error{e.kind, e.err} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// wrongType returns the error for an expression whose type is not one of want.
func wrongType(got *celgo.Type, want []*celgo.Type) *CompileError {
	detail := fmt.Sprintf("must evaluate to one of %v but got %v", want, got)
	if len(want) == 1 {
		detail = fmt.Sprintf("must evaluate to %v but got %v", want[0], got)
	}
	return &CompileError{Stage: Returning, Detail: detail, Got: got}
}
