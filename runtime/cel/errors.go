package cel

import (
	"errors"
	"fmt"

	celgo "github.com/google/cel-go/cel"
)

// Stage is where a compilation ended.
type Stage int

const (
	// Checking is parsing and checking of types: the text has a line for each fault, with the place it is at.
	Checking Stage = iota
	// Returning is that the expression has not the type that was wanted: [CompileError.Got] has what it is.
	Returning
	// Planning is the making of a program: constants that cannot be.
	Planning
	// Estimating is the estimate of the cost.
	Estimating
)

// CompileError says why an expression has no program. It is always the fault of the expression.
type CompileError struct {
	Stage Stage
	// Detail is what cel-go says, without what kube-apiserver puts before it.
	Detail string
	// Got is the type of the expression, of stage Returning.
	Got *celgo.Type

	references map[string]struct{} // of stages after the check of types
}

// References says whether the expression names a variable, if its types could be checked: of stages Planning and Estimating.
func (e *CompileError) References(variable string) bool {
	_, has := e.references[variable]
	return has
}

// Error is as kube-apiserver says it of expressions in admission; that of a messageExpression in a schema and of a type that
// is not wanted in one have other words, which the caller makes of Stage and Detail.
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
	// ErrCallCost is that one evaluation would cost more than [MaxCallCost]. The error around it has the words of cel-go,
	// which begin with "operation cancelled: actual cost limit exceeded".
	ErrCallCost = errors.New("operation cancelled: actual cost limit exceeded")
	// ErrBudget is that an evaluation cost more than what the caller had left, or that nothing was left before it. Whether
	// it was a success does not matter then.
	ErrBudget = errors.New("out of budget")
	// ErrInterrupted is that the context ended.
	ErrInterrupted = errors.New("operation interrupted")
)

// EvalError is that an evaluation ended with an error: the text is that of cel-go alone.
type EvalError struct {
	text string
	kind error // of the three above, or nil
	err  error // the cause: why the context ended
}

func (e *EvalError) Error() string { return e.text }

// Unwrap has one of ErrCallCost, ErrBudget and ErrInterrupted, if it is one, and the reason a context ended.
func (e *EvalError) Unwrap() []error {
	var all []error
	for _, err := range []error{e.kind, e.err} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// wrongType says that an expression is of a type that is not wanted.
func wrongType(got *celgo.Type, want []*celgo.Type) *CompileError {
	detail := fmt.Sprintf("must evaluate to one of %v but got %v", want, got)
	if len(want) == 1 {
		detail = fmt.Sprintf("must evaluate to %v but got %v", want[0], got)
	}
	return &CompileError{Stage: Returning, Detail: detail, Got: got}
}
