package rules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/runtime/cel"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Options are the inputs of [Compiler.Check] besides the schema.
type Options struct {
	// Options are the options of [structural.Check].
	structural.Options
	// Stored are the expressions of all versions of the stored definition. They may use features that are new in this release,
	// because the stored definition uses them already. The zero value is for a new definition.
	Stored Expressions
	// Unchanged means that this version of the definition had the same schema before. Then the cost of each single rule is not
	// checked, but the total cost is.
	Unchanged bool
}

// Expressions is a set of the rules and message expressions of some schemas.
type Expressions struct{ known expressionSet }

// ExpressionsOf returns the expressions of schemas. Elements of schemas may be nil.
func ExpressionsOf(schemas ...*apiextensionsv1.JSONSchemaProps) Expressions {
	e := Expressions{expressionSet{map[string]bool{}, map[string]bool{}}}
	for _, schema := range schemas {
		compiled, err := structural.Compile(schema)
		if err != nil {
			continue // no rule of this schema was ever compiled
		}
		for _, s := range compiled.All(nil) {
			for i := range s.Rules {
				e.known.rules[s.Rules[i].Rule] = true
				e.known.messages[s.Rules[i].MessageExpression] = true
			}
		}
	}
	return e
}

// Check returns the errors of a schema and its rules, in the order and the words of kube-apiserver. These are the errors of
// [structural.Check], rules and message expressions that do not compile or may cost too much, uses of oldSelf where there is no
// old value, and defaults that violate the rules. path is the path of the schema. A rule is not checked if the schema that it is
// in has other errors.
//
// The running time depends on the number and the length of the rules: some tenths of a millisecond for each rule, and for long
// rules a time that grows with the square of the length. If ctx ends, Check ends too and returns an error. A server that checks
// schemas of its clients should bound their rules or the context. kube-apiserver has neither bound.
//
// The rules of a schema without errors are kept for a minute, for [Compiler.Take]. With [Options].Unchanged, the rules of a schema
// that had no errors lately are not checked again.
//
// The BadValue of an error may be an apiextensionsv1.ValidationRule.
func (c *Compiler) Check(ctx context.Context, path *field.Path, props *apiextensionsv1.JSONSchemaProps, options Options) field.ErrorList {
	errs := structural.Check(path, props, options.Options)
	if !mentionsRules(props) {
		return errs
	}
	fingerprint, err := structural.FingerprintOf(props)
	if err != nil {
		return append(errs, field.InternalError(path, err))
	}
	if len(errs) == 0 && options.Unchanged && c.checked.has(fingerprint) {
		return nil
	}
	ground := structural.Prepare(path, props, options.Options)
	if ground.Schema == nil {
		return errs
	}
	one := uint64(1)
	j := judge{ctx: ctx, compiler: c, options: options, faulty: ground.Faulty, made: newMade()}
	j.check(path, &surroundings{schema: ground.Schema, resource: true, ruled: len(ground.Schema.Rules) > 0, times: &one})
	defaults, err := c.defaultErrors(ctx, path, ground, j.made)
	if err != nil {
		return append(errs, field.InternalError(path, err))
	}
	if len(defaults) > 0 {
		end := len(errs) - len(ground.Keywords) // the keyword errors come last, after the defaults
		return slices.Replace(errs, end-len(ground.Defaults), end, defaults...)
	}
	errs = append(errs, j.errs...)
	if err := ctx.Err(); err != nil {
		return append(errs, field.InternalError(path, err))
	}
	if errs = append(errs, j.totalErrors(path)...); len(errs) == 0 {
		c.checked.add(fingerprint, func() (*Rules, error) { return c.compile(ctx, ground.Schema, j.made) })
	}
	return errs
}

// mentionsRules reports whether props or a schema inside it has rules.
func mentionsRules(props *apiextensionsv1.JSONSchemaProps) bool {
	if props == nil {
		return false
	}
	if len(props.XValidations) > 0 || props.Items != nil && mentionsRules(props.Items.Schema) ||
		props.AdditionalProperties != nil && mentionsRules(props.AdditionalProperties.Schema) {
		return true
	}
	for name := range props.Properties {
		if property := props.Properties[name]; mentionsRules(&property) {
			return true
		}
	}
	return false
}

// judge checks the rules of one schema.
type judge struct {
	ctx      context.Context // of the call
	compiler *Compiler
	options  Options
	faulty   map[string]bool // paths of schemas with other errors in them or below

	errs  field.ErrorList
	total uint64 // cost
	most  []expense

	regexes regexBudget
	made    *made

	observe func(path string, r *compiled, times uint64) // set in tests only
}

// expense is the cost of an expression that is a considerable part of the total.
type expense struct {
	path *field.Path
	cost uint64
}

// surroundings is the context in which the rules of a schema are checked.
type surroundings struct {
	above    *surroundings // nil for the root
	name     string        // name of the property; empty for the elements of a list or the members of a map
	property bool
	schema   *structural.Schema
	resource bool

	ruled  bool        // this schema or one above it has rules, so types are needed
	times  *uint64     // maximum number of values of the schema in an object, nil if unbounded
	noPast *field.Path // path of the nearest list or object above whose elements have no old values, nil if there is none

	known   bool // whether typ and failure are set
	typ     *cel.DeclType
	failure error
}

// typeOf returns the type of values of the schema. It is a part of the type of the schema above, if that type was needed for
// rules.
func (s *surroundings) typeOf() (*cel.DeclType, error) {
	if s.known {
		return s.typ, s.failure
	}
	s.known = true
	if s.above != nil && s.above.ruled {
		around, err := s.above.typeOf()
		switch {
		case err != nil:
			s.failure = err
			return nil, err
		case !s.property:
			s.typ = around.Elem
			return s.typ, nil
		default:
			if escaped, ok := cel.Escape(s.name); ok && around.Fields[escaped] != nil {
				s.typ = around.Fields[escaped].Type
				return s.typ, nil
			}
		}
	}
	if s.typ = declare(s.schema, s.resource); s.typ == nil {
		s.failure = errors.New("unable to convert structural schema to CEL declarations")
	}
	return s.typ, s.failure
}

// inside returns the surroundings of a schema that is directly inside that of s.
func (s *surroundings) inside(schema *structural.Schema) *surroundings {
	inside := &surroundings{
		above: s, schema: schema, resource: schema.Embedded, ruled: s.ruled || len(schema.Rules) > 0, noPast: s.noPast,
	}
	if factor := maxElements(s.schema); factor != nil && s.times != nil {
		times := product(*s.times, *factor)
		inside.times = &times
	}
	return inside
}

// check checks the rules of a schema after the rules of the schemas inside it.
func (j *judge) check(path *field.Path, at *surroundings) {
	s := at.schema
	if s.Additional != nil {
		j.check(path.Child("additionalProperties"), at.inside(s.Additional))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		inside := at.inside(s.Properties[name])
		inside.name, inside.property = name, true
		if !membersHavePast(s) && inside.noPast == nil {
			inside.noPast = path
		}
		j.check(path.Child("properties").Key(name), inside)
	}
	if s.Items != nil {
		inside := at.inside(s.Items)
		if s.ListType != "map" && inside.noPast == nil {
			inside.noPast = path
		}
		j.check(path.Child("items"), inside)
	}
	if len(s.Rules) > 0 && !j.faulty[path.String()] {
		j.rules(path.Child("x-kubernetes-validations"), at)
	}
}

// rules checks the rules of one schema. path is the path of the rules.
func (j *judge) rules(path *field.Path, at *surroundings) {
	if j.ctx.Err() != nil {
		return
	}
	typ, err := at.typeOf()
	if err != nil {
		j.add(field.InternalError(path, fmt.Errorf("internal error: failed to construct type information for x-kubernetes-validations rules: %w", err)))
		return
	}
	sc := scope{ctx: j.ctx, compiler: j.compiler, known: j.options.Stored.known, typ: typ, regexes: &j.regexes, made: j.made}
	all, err := sc.rules(at.schema)
	if err != nil && j.ctx.Err() == nil {
		j.add(field.InternalError(path, err))
	}
	for i := range all {
		j.rule(path.Index(i), at, &all[i], at.schema.Rules[i], typ)
	}
}

func (j *judge) rule(path *field.Path, at *surroundings, c *compiled, written apiextensionsv1.ValidationRule, typ *cel.DeclType) {
	times := uint64(cel.MaxRequestSize / (typ.MinSize + 1)) // as many values as fit into a request, with commas between them
	if at.times != nil {
		times = *at.times
	}
	if j.observe != nil {
		j.observe(path.String(), c, times)
	}
	cost := product(c.cost(), times)
	if cost > maxRuleCost && !j.options.Unchanged {
		j.add(field.Forbidden(path.Child("rule"), tooCostly("estimated rule cost", cost, maxRuleCost)))
	}
	j.spend(path.Child("rule"), cost)
	if c.fault != "" {
		j.add(field.Invalid(path.Child("rule"), written, c.fault))
	}
	if c.messageFault != "" {
		j.add(field.Invalid(path.Child("messageExpression"), written, c.messageFault))
	} else if c.expression != nil {
		if c.messageCost() > maxRuleCost && !j.options.Unchanged {
			j.add(field.Forbidden(path.Child("messageExpression"), tooCostly("estimated messageExpression cost", c.messageCost(), maxRuleCost)))
		}
		j.spend(path.Child("messageExpression"), c.messageCost())
	}
	switch {
	case c.usesOldSelf && at.noPast != nil:
		j.add(field.Invalid(path.Child("rule"), written.Rule, fmt.Sprintf("oldSelf cannot be used on the uncorrelatable portion of the schema within %v", at.noPast)))
	case !c.usesOldSelf && written.OptionalOldSelf != nil:
		j.add(field.Invalid(path.Child("optionalOldSelf"), *written.OptionalOldSelf, "may not be set if oldSelf is not used in rule"))
	}
}

func (j *judge) add(err *field.Error) { j.errs = append(j.errs, err) }
