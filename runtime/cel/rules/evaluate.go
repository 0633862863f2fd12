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

// Budget is the maximum cost of all rules of an object together.
const Budget = cel.MaxObjectCost

// Outcome is the result of evaluating the rules on an object.
type Outcome struct {
	// Errors has an error for each rule that failed, and for each rule that could not be evaluated.
	Errors field.ErrorList
	// Tolerated has an error for each rule that failed on a value that the update does not change. These are not errors of the
	// request: the client gets each text as a warning.
	Tolerated field.ErrorList
	// Budget is the remaining budget. If it is less than zero, some rules were not evaluated, and Errors has an error that says
	// so.
	Budget int64
}

// Validate evaluates the rules on a new object. path is the path of the object. The object has to be decoded JSON, and Validate
// only reads it.
//
// The variable self is the value of the schema that has the rule. An object has the fields that its schema names, with escaped
// names where the names are not identifiers. Fields that are null are absent. The root and embedded resources have apiVersion,
// kind, metadata.name and metadata.generateName whatever the schema says. They have no other field of metadata, unless the schema
// describes all four of these fields with their types; then they have all fields of metadata that it describes. Rules cannot see
// members that the schema does not describe. Such members count when objects are compared, and count as null when the keys of an
// object are visited. Values are read in place: nothing is copied, and values that no rule uses are not read. An object that is
// converted to dyn has only the members that rules see; in kube-apiserver a macro over such an object also visits a null for each
// other member.
//
// Lists of type set and map are equal in any order, and X + Y is their union.
//
// The cost of each evaluation is taken from the budget. When the budget is spent, or when one evaluation costs too much, no
// further rule is evaluated and there is an error.
func (r *Rules) Validate(ctx context.Context, path *field.Path, object any, budget int64) Outcome {
	return r.validate(ctx, path, object, nil, nil, budget)
}

// ValidateUpdate evaluates the rules on the new state of an object whose state was old before, with ratcheting. It is otherwise
// like [Rules.Validate].
//
// The variable oldSelf is the value before the update. A rule that uses oldSelf is evaluated only if there is an old value.
// Elements of lists of type map correspond by their keys, and members of objects by their names; elements of other lists have no
// old value. With optionalOldSelf the rule is always evaluated, and oldSelf is an optional value. In the message expression
// oldSelf is not optional even then.
//
// If an update does not change a value, a rule that fails on the value and does not use oldSelf is tolerated: its error is in
// Tolerated. Values correspond as in [structural.Schema.ValidateUpdate]. If a value has no corresponding old value, the nearest
// value around it that has one decides. Errors of the evaluation itself are never tolerated.
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

// walk evaluates the rules on one object. It ends when its budget is less than zero.
type walk struct {
	ctx       context.Context
	path      *field.Path
	pair      func() *structural.Pairs // pairs old and new values for ratcheting, nil without ratcheting
	pairs     *structural.Pairs        // result of pair, nil until needed
	budget    int64
	meter     meter
	errs      field.ErrorList
	tolerated field.ErrorList
}

// place is the position of a value in an object. It is converted to a field.Path only when there is an error.
type place struct {
	above *place // nil for the object
	step
}

type step struct {
	name  string // of a member
	index int    // of an element, if kind is toElement
	kind  stepKind
}

type stepKind uint8

const (
	toProperty stepKind = iota
	toAdditional
	toElement
)

// at returns path extended by the place.
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

// value evaluates the rules on a value and on the values inside it. old is the value before the update, nil if there is none to
// compare with.
func (w *walk) value(n *node, at *place, value, old any) {
	if value == nil { // the schema around a null value decides about it
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

// variables has the values of the variables of the rules on one value.
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
			if w.failed(n, r, at, value, plain); w.budget < 0 { // as in kube-apiserver, oldSelf is not optional in a message expression
				return
			}
		}
	}
}

// eval evaluates an expression, and takes its cost from the budget. An expression that costs nothing can be evaluated with a
// budget of zero.
func (w *walk) eval(p *cel.Program, scope *variables) (ref.Val, error) {
	result, left, err := p.Eval(w.ctx, scope, w.budget+1)
	if left > 0 {
		w.budget = left - 1
		return result, err
	}
	return nil, cel.ErrBudget
}

// exhausted adds the error of a spent budget and ends the walk.
func (w *walk) exhausted(at *place, n *node) {
	w.invalid(at, n, "validation failed due to running out of cost budget, no further validation rules will be run")
	w.budget = -1
}

// invalid adds an error about a rule that could not be evaluated.
func (w *walk) invalid(at *place, n *node, detail string) {
	w.errs = append(w.errs, field.Invalid(at.at(w.path), n.schema.Type, detail))
}

// shown returns the text by which errors name the rule.
func (c *compiled) shown() string {
	if c.hasMessage {
		return c.message
	}
	return c.text
}

// failed adds the error of a rule whose result is not true.
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

// add adds the error of a rule whose result is not true. The error is tolerated if the value is known to be unchanged and the
// rule does not use oldSelf. If the value itself has no corresponding old value, the value around it decides.
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

// message evaluates a message expression. message is empty if there is no expression, if it fails, or if its result cannot be
// shown. fatal is not empty if no further rule may be evaluated; it is the text of the error.
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
