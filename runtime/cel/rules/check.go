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

// Options say what [Compiler.Check] has to know besides the schema.
type Options struct {
	// Options are those of [structural.Check].
	structural.Options
	// Stored are the expressions of all versions of the definition that is updated. They may use what is new in this
	// release, since they did so already. The zero value is for a new definition.
	Stored Expressions
	// Unchanged says that this version of the definition had the same schema before: then what each rule may cost is not
	// held against it, but what all of them may cost is.
	Unchanged bool
}

// Expressions are those of some schemas.
type Expressions struct{ known expressionSet }

// ExpressionsOf returns the expressions of schemas, of which some may be nil.
func ExpressionsOf(schemas ...*apiextensionsv1.JSONSchemaProps) Expressions {
	e := Expressions{expressionSet{map[string]bool{}, map[string]bool{}}}
	for _, schema := range schemas {
		compiled, err := structural.Compile(schema)
		if err != nil {
			continue // no rule of it was ever compiled
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

// Check returns what is wrong with a schema and its rules, in the order and the words of kube-apiserver: what [structural.Check]
// finds, rules and expressions of messages that do not compile or may cost too much, oldSelf where there is no such
// thing, and defaults that do not fulfil the rules. path is where the schema is. A rule is not judged if what it stands on is
// at fault.
//
// How long it takes depends on how many rules there are and how long they are: some tenth of a millisecond for each, and more
// for long ones, by the square. When ctx ends it ends too, with an error.
//
// The value of an error may be an apiextensionsv1.ValidationRule.
func (c *Compiler) Check(ctx context.Context, path *field.Path, props *apiextensionsv1.JSONSchemaProps, options Options) field.ErrorList {
	errs := structural.Check(path, props, options.Options)
	if !mentionsRules(props) {
		return errs
	}
	ground := structural.Prepare(path, props, options.Options)
	if ground.Schema == nil {
		return errs
	}
	defaults, err := c.defaultErrors(ctx, path, ground)
	if err != nil {
		return append(errs, field.InternalError(path, err))
	}
	if len(defaults) > 0 {
		end := len(errs) - len(ground.Keywords) // which come last, after the defaults
		return slices.Replace(errs, end-len(ground.Defaults), end, defaults...)
	}
	one := uint64(1)
	j := judge{ctx: ctx, compiler: c, options: options, faulty: ground.Faulty}
	j.check(path, &surroundings{schema: ground.Schema, resource: true, ruled: len(ground.Schema.Rules) > 0, times: &one})
	errs = append(errs, j.errs...)
	if err := ctx.Err(); err != nil {
		return append(errs, field.InternalError(path, err))
	}
	return append(errs, j.totalErrors(path)...)
}

// mentionsRules says that there are rules in props or below.
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

// judge judges the rules of one schema.
type judge struct {
	ctx      context.Context // of the call
	compiler *Compiler
	options  Options
	faulty   map[string]bool // paths of schemas with other faults in them or below

	errs  field.ErrorList
	total uint64 // cost
	most  []expense

	regexes regexBudget

	observe func(path string, r *compiled, times uint64) // for tests, nil outside of them
}

// expense is an expression whose cost has a part in the total that is worth telling.
type expense struct {
	path *field.Path
	cost uint64
}

// surroundings are what the rules of a schema are judged by besides it.
type surroundings struct {
	above    *surroundings // nil for the root
	name     string        // of a property; or else it is the elements of a list or the members of a map
	property bool
	schema   *structural.Schema
	resource bool

	ruled  bool        // there are rules here or above, so that types are of interest
	times  *uint64     // how often values of the schema can be in an object at most, nil if that has no bounds
	noPast *field.Path // of the list around, or the object, in which nothing has what it was before, nil if there is none

	known   bool // what typ and failure are
	typ     *cel.DeclType
	failure error
}

// typeOf returns the type of values of the schema. It is a part of that of the schema around, if that was needed for rules.
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

// inside returns the surroundings of a schema in that of s.
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

// check judges the rules of a schema after those below it.
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

// rules judges the rules of one schema. path is theirs.
func (j *judge) rules(path *field.Path, at *surroundings) {
	if j.ctx.Err() != nil {
		return
	}
	typ, err := at.typeOf()
	if err != nil {
		j.add(field.InternalError(path, fmt.Errorf("internal error: failed to construct type information for x-kubernetes-validations rules: %w", err)))
		return
	}
	sc := scope{ctx: j.ctx, compiler: j.compiler, known: j.options.Stored.known, typ: typ, regexes: &j.regexes}
	all, err := sc.rules(at.schema)
	if err != nil && j.ctx.Err() == nil {
		j.add(field.InternalError(path, err))
	}
	for i := range all {
		j.rule(path.Index(i), at, &all[i], at.schema.Rules[i], typ)
	}
}

func (j *judge) rule(path *field.Path, at *surroundings, c *compiled, written apiextensionsv1.ValidationRule, typ *cel.DeclType) {
	times := uint64(cel.MaxRequestSize / (typ.MinSize + 1)) // as many as a request has room for, with commas between
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
