package rules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"github.com/keelson-dev/keelson/runtime/cel"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Budget is what all rules of an object may cost together.
const Budget = cel.MaxObjectCost

// Outcome is what rules say of an object.
type Outcome struct {
	// Errors are the rules that failed, and those that could not be evaluated.
	Errors field.ErrorList
	// Tolerated are rules that failed on values which an update does not change: not errors, but a client is warned of each,
	// by its text.
	Tolerated field.ErrorList
	// Budget is what is left of it. If it is less than zero, some rules were not evaluated, and there is an error of that.
	Budget int64
}

// Validate evaluates the rules on a new object, whose path is path. It reads the object, which has to be decoded JSON.
func (r *Rules) Validate(ctx context.Context, path *field.Path, object any, budget int64) Outcome {
	return r.validate(ctx, path, object, nil, nil, budget)
}

// ValidateUpdate evaluates the rules on an object that was old before, with ratcheting.
func (r *Rules) ValidateUpdate(ctx context.Context, path *field.Path, object, old any, budget int64) Outcome {
	if r == nil {
		return Outcome{Budget: budget}
	}
	return r.validate(ctx, path, object, old, func() *structural.Pairs { return structural.NewPairs(r.schema, object, old) }, budget)
}

func (r *Rules) validate(ctx context.Context, path *field.Path, object, old any, pair func() *structural.Pairs, budget int64) Outcome {
	if r == nil {
		return Outcome{Budget: budget}
	}
	w := walk{ctx: ctx, path: path, pair: pair, budget: min(budget, math.MaxInt64-1), meter: meter{maxWork}}
	w.value(r.root, nil, object, old)
	return Outcome{Errors: w.errs, Tolerated: w.tolerated, Budget: w.budget}
}

// walk is the evaluation of rules on one object. When its budget is less than zero it is over.
type walk struct {
	ctx       context.Context
	path      *field.Path
	pair      func() *structural.Pairs // for ratcheting, nil if there is none
	pairs     *structural.Pairs        // made by it when it was needed
	budget    int64
	meter     meter
	errs      field.ErrorList
	tolerated field.ErrorList
}

// place is where in an object a value is. It is only made into something that lasts when there is an error.
type place struct {
	above *place // nil for the object
	step
}

type step struct {
	name  string // of a member
	index int    // of an element, if kind says so
	kind  stepKind
}

type stepKind uint8

const (
	toProperty stepKind = iota
	toAdditional
	toElement
)

// at returns the path of a place below the path of the object.
func (p *place) at(path *field.Path) *field.Path {
	if p == nil {
		return path
	}
	path = p.above.at(path)
	switch p.kind {
	case toAdditional:
		return path.Key(p.name)
	case toElement:
		return path.Index(p.index)
	}
	return path.Child(p.name)
}

// value evaluates the rules on a value and those on what is in it. old is what it was before, nil if there is nothing that
// it can be compared with.
func (w *walk) value(n *node, at *place, value, old any) {
	if value == nil { // rules on null belong to what is around it
		return
	}
	if n.failure != nil {
		w.invalid(at, n, fmt.Sprintf("rule compiler initialization error: %v", n.failure))
	} else if len(n.rules) > 0 {
		w.rules(n, at, value, old)
	}
	if w.budget < 0 {
		return
	}
	switch v := value.(type) {
	case []any:
		if n.items != nil {
			before, _ := old.([]any)
			w.elements(n, at, v, before)
		}
	case map[string]any:
		before, _ := old.(map[string]any)
		w.members(n, at, v, before)
	}
}

func (w *walk) elements(n *node, at *place, list, old []any) {
	find := finder(n.schema, old)
	for i, element := range list {
		w.value(n.items, &place{at, step{index: i, kind: toElement}}, element, find.find(element))
		if w.budget < 0 {
			return
		}
	}
}

func (w *walk) members(n *node, at *place, object, old map[string]any) {
	if !membersHavePast(n.schema) {
		old = nil
	}
	if n.additional != nil {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			w.value(n.additional, &place{at, step{name: name, kind: toAdditional}}, object[name], old[name])
			if w.budget < 0 {
				return
			}
		}
	}
	for i := range n.properties {
		p := &n.properties[i]
		if member, ok := object[p.name]; ok {
			w.value(p.node, &place{at, step{name: p.name}}, member, old[p.name])
			if w.budget < 0 {
				return
			}
		}
	}
}

// variables are those of the rules on one value.
type variables struct{ self, oldSelf ref.Val }

var _ interpreter.Activation = (*variables)(nil)

// ResolveName implements interpreter.Activation.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case selfName:
		return v.self, true
	case oldSelfName:
		return v.oldSelf, v.oldSelf != nil
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (v *variables) Parent() interpreter.Activation { return nil }

// rules evaluates the rules of one schema.
func (w *walk) rules(n *node, at *place, value, old any) {
	if w.budget <= 0 {
		w.exhausted(at, n)
		return
	}
	plain := &variables{self: view(value, n.schema, &w.meter)}
	optional := plain
	if n.usesOldSelf {
		optional = &variables{plain.self, types.OptionalNone}
		if old != nil {
			plain.oldSelf = view(old, n.schema, &w.meter)
			optional.oldSelf = types.OptionalOf(plain.oldSelf)
		}
	}
	for i := range n.rules {
		r := &n.rules[i]
		switch {
		case r.fault != "":
			w.invalid(at, n, "rule compile error: "+r.fault)
			continue
		case r.program == nil || r.usesOldSelf && old == nil && !r.optional:
			continue
		}
		scope := plain
		if r.optional {
			scope = optional
		}
		result, err := w.eval(r.program, scope)
		if errors.Is(err, cel.ErrBudget) {
			w.exhausted(at, n)
			return
		}
		switch {
		case errors.Is(err, cel.ErrCallCost):
			w.invalid(at, n, fmt.Sprintf("'%v': no further validation rules will be run due to call cost exceeds limit for rule: %v", err, r.shown()))
			w.budget = -1
			return
		case err != nil && strings.HasPrefix(err.Error(), "no such overload"):
			w.invalid(at, n, fmt.Sprintf("'%v': call arguments did not match a supported operator, function or macro signature for rule: %v", err, r.shown()))
		case err != nil:
			w.invalid(at, n, fmt.Sprintf("%v evaluating rule: %v", err, r.shown()))
		case result != types.True:
			if w.failed(n, r, at, value, plain); w.budget < 0 { // sic: oldSelf is not optional in the expression of a message
				return
			}
		}
	}
}

// eval evaluates an expression, and takes from the budget what it cost. What costs nothing needs no budget.
func (w *walk) eval(p *cel.Program, scope *variables) (ref.Val, error) {
	result, left, err := p.Eval(w.ctx, scope, w.budget+1)
	if left > 0 {
		w.budget = left - 1
		return result, err
	}
	return nil, cel.ErrBudget
}

// exhausted says that there is no budget any more.
func (w *walk) exhausted(at *place, n *node) {
	w.invalid(at, n, "validation failed due to running out of cost budget, no further validation rules will be run")
	w.budget = -1
}

// invalid adds an error about a rule that could not be evaluated.
func (w *walk) invalid(at *place, n *node, detail string) {
	w.errs = append(w.errs, field.Invalid(at.at(w.path), n.schema.Type, detail))
}

// shown is how errors name a rule.
func (c *compiled) shown() string {
	if c.hasMessage {
		return c.message
	}
	return c.text
}

// failed adds the error of a rule that is not fulfilled.
func (w *walk) failed(n *node, r *compiled, at *place, value any, scope *variables) {
	path := at.at(w.path)
	if r.path != "" {
		path = path.Child(r.path)
	}
	message, fatal := w.message(r, scope)
	switch {
	case fatal != "":
		w.add(r, at, field.Invalid(path, n.schema.Type, fatal))
		w.budget = -1
		return
	case message != "":
	case r.hasMessage:
		message = r.message
	default:
		message = "failed rule: " + r.text
	}
	if n.schema.Type == "object" || n.schema.Type == "array" {
		value = field.OmitValueType{}
	}
	w.add(r, at, failure(r.reason, path, value, message))
}

// add adds the error of a rule that is not fulfilled. It is tolerated if the value is known to be unchanged, and the rule is
// not about changes. Where the value itself has nothing to be compared with, that which is around it counts.
func (w *walk) add(r *compiled, at *place, err *field.Error) {
	if w.pair != nil && !r.usesOldSelf && w.unchanged(at) {
		w.tolerated = append(w.tolerated, err)
		return
	}
	w.errs = append(w.errs, err)
}

func failure(reason *apiextensionsv1.FieldValueErrorReason, path *field.Path, value any, message string) *field.Error {
	if reason != nil {
		switch *reason {
		case apiextensionsv1.FieldValueForbidden:
			return field.Forbidden(path, message)
		case apiextensionsv1.FieldValueRequired:
			return field.Required(path, message)
		case apiextensionsv1.FieldValueDuplicate:
			return field.Duplicate(path, value)
		}
	}
	return field.Invalid(path, value, message)
}

// message evaluates the expression of a message. There is none if it fails, or makes nothing that can be shown; fatal says why
// nothing is evaluated any more.
func (w *walk) message(r *compiled, scope *variables) (message, fatal string) {
	if r.expression == nil {
		return "", ""
	}
	result, err := w.eval(r.expression, scope)
	switch {
	case errors.Is(err, cel.ErrBudget):
		return "", "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
	case errors.Is(err, cel.ErrCallCost):
		return "", fmt.Sprintf("no further validation rules will be run due to call cost exceeds limit for messageExpression: %q", r.expressionText)
	}
	if err != nil {
		return "", ""
	}
	text, _ := result.Value().(string)
	text = strings.TrimSpace(text)
	if len(text) > cel.MaxMessageSize || strings.Contains(text, "\n") {
		return "", ""
	}
	return text, ""
}
