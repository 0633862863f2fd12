package cel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/keelson-dev/keelson/runtime/cel"
)

// FuzzEval compiles and evaluates any expression. The result is a program or an error, the budget never grows, and nothing
// panics.
func FuzzEval(f *testing.F) {
	for i, r := range records(f) {
		if i%40 == 0 && r.Outcomes[0].Cost < 10_000 {
			f.Add(r.Expression)
		}
	}
	env, vars := environment(f, cel.Stored), activation(f)
	f.Fuzz(func(t *testing.T, expression string) {
		program, err := env.Compile(expression)
		if err != nil {
			var fault *cel.CompileError
			if !errors.As(err, &fault) || err.Error() == "" {
				t.Fatalf("got %T %v", err, err)
			}
			return
		}
		if program.Cost().Min > program.Cost().Max {
			t.Errorf("estimated from %d to %d", program.Cost().Min, program.Cost().Max)
		}
		result, remaining, err := program.Eval(context.Background(), vars, cel.MaxCallCost)
		if remaining > cel.MaxCallCost || remaining < -1 || (err == nil) == (result == nil) || remaining < 0 && !errors.Is(err, cel.ErrBudget) {
			t.Errorf("got %v, %d, %v", result, remaining, err)
		}
	})
}
