// Package condition compiles the match conditions of an authorization webhook, which decide about which requests it is asked:
// https://kubernetes.io/docs/reference/access-authn-authz/authorization/#using-configuration-file-for-authorization.
//
//	compiler, err := condition.NewCompiler()
//	conditions, errs := compiler.Compile([]string{"has(request.resourceAttributes)"}, field.NewPath("matchConditions"))
//	hook, err := webhook.New(cfg, webhook.Options{Match: conditions.Match})
//
// A condition is an expression in CEL with the variable request, which is the spec of a SubjectAccessReview in authorization.k8s.io/v1. All
// of its fields are there, with those that the request does not have as empty values, except for resourceAttributes or
// nonResourceAttributes, and selectors. A selector has requirements, and no rawSelector.
//
// The webhook is asked if all conditions are true. They are evaluated in their order. The first that is false ends the evaluation: the
// webhook is not asked, and this is no failure, even if a condition before it has failed. If none is false, the errors of those that have
// failed are the result.
//
// # Bounds
//
//	conditions of a webhook                       64   Max
//	cost of one expression, and of all of them    1 and 10 million   cel.MaxCallCost, cel.MaxObjectCost
package condition

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/authz/webhook"
	"github.com/keelson-dev/keelson/runtime/cel"
	"github.com/keelson-dev/keelson/runtime/cel/plain"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Max is the largest number of conditions.
const Max = 64

// Compiler compiles conditions. Make one with NewCompiler, which takes milliseconds. It may be used concurrently.
type Compiler struct{ env *plain.Environment }

// Conditions are the compiled conditions of a webhook. They may be used concurrently.
type Conditions struct{ all []condition }

type condition struct {
	text    string
	program *plain.Program
}

const variable = "request"

// NewCompiler returns a Compiler.
func NewCompiler() (*Compiler, error) {
	env, err := plain.New(cel.Compatible, []cel.Variable{{Name: variable, Type: request()}})
	if err != nil {
		return nil, err
	}
	return &Compiler{env}, nil
}

// Compile compiles expressions. The errors have the words of kube-apiserver, and name elements of the list at a path.
func (c *Compiler) Compile(expressions []string, at *field.Path) (*Conditions, field.ErrorList) {
	if len(expressions) > Max {
		return nil, field.ErrorList{field.TooMany(at, len(expressions), Max)}
	}
	var errs field.ErrorList
	out := &Conditions{}
	seen := map[string]bool{}
	for i, text := range expressions {
		at := at.Index(i).Child("expression")
		if strings.TrimSpace(text) == "" {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		if seen[text] {
			errs = append(errs, field.Duplicate(at, text))
			continue
		}
		seen[text] = true
		program, err := c.env.Compile(text)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(at, text, err.Error()))
		case !program.IsBool():
			errs = append(errs, field.Invalid(at, text, "must evaluate to bool but got "+program.Type()))
		default:
			out.all = append(out.all, condition{text, program})
		}
	}
	return out, errs
}

// Match reports whether all conditions are true for a request. It is a Match of webhook.Options. The error has those of all conditions that
// have failed, and is nil if another one is false. If the cost of all is used up, or ctx ends, the evaluation ends with an error.
func (c *Conditions) Match(ctx context.Context, s *webhook.Spec) (bool, error) {
	budget := int64(cel.MaxObjectCost)
	variables := map[string]any{variable: valueOf(s)}
	var errs []error
	for _, one := range c.all {
		value, left, err := one.program.Eval(ctx, variables, budget)
		budget = left
		if err == nil && value != true {
			return false, nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cel evaluation error: expression '%s' resulted in error: %w", one.text, err))
		}
		if errors.Is(err, cel.ErrBudget) || errors.Is(err, cel.ErrInterrupted) {
			break
		}
	}
	return len(errs) == 0, utilerrors.NewAggregate(errs)
}
