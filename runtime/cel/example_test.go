package cel_test

import (
	"context"
	"fmt"

	celgo "github.com/google/cel-go/cel"

	"github.com/keelson-dev/keelson/runtime/cel"
)

// A program compiles a rule about two variables, refuses it if it may be too expensive, and evaluates it with values.
func Example() {
	base, err := cel.New(cel.Compatible) // slow: once for each process
	if err != nil {
		fmt.Println(err)
		return
	}
	env, err := base.Extend([]cel.Variable{{Name: "name", Type: cel.String(63)}, {Name: "masts", Type: cel.Int()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	program, err := env.Compile("name.startsWith('boat-') && masts <= 3", celgo.BoolType)
	if err != nil {
		fmt.Println(err)
		return
	}
	if program.Cost().Max > cel.MaxCallCost {
		fmt.Println("the rule is too expensive")
		return
	}

	budget := int64(cel.MaxObjectCost) // of all rules of an object together
	for _, masts := range []int{2, 5} {
		values, err := celgo.NewActivation(map[string]any{"name": "boat-a", "masts": masts})
		if err != nil {
			fmt.Println(err)
			return
		}
		result, remaining, err := program.Eval(context.Background(), values, budget)
		if err != nil {
			fmt.Println(err)
			return
		}
		budget = remaining
		fmt.Println(masts, "masts:", result.Value())
	}

	_, err = env.Compile("masts + 1", celgo.BoolType)
	fmt.Println(err)
	// Output:
	// 2 masts: true
	// 5 masts: false
	// must evaluate to bool but got int
}
