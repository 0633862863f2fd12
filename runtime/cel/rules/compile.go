package rules

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/keelson-dev/keelson/runtime/cel"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// The variables of rules.
const (
	selfName    = "self"
	oldSelfName = "oldSelf"
)

// Compiler compiles rules. It takes a while to make one, so a program has one. It may be used concurrently.
type Compiler struct {
	stored, compatible *cel.Environment
}

// NewCompiler returns a compiler for the language of this release of Kubernetes.
func NewCompiler() (*Compiler, error) {
	stored, err := cel.New(cel.Stored)
	if err != nil {
		return nil, err
	}
	compatible, err := cel.New(cel.Compatible)
	if err != nil {
		return nil, err
	}
	return &Compiler{stored: stored, compatible: compatible}, nil
}

// compiled is a rule, compiled as far as it goes.
type compiled struct {
	text        string // of the rule
	message     string // without space around
	hasMessage  bool   // it may be empty
	reason      *apiextensionsv1.FieldValueErrorReason
	path        string // of the field that is at fault, from the value; "" is the value itself
	optional    bool   // oldSelf is an optional value, and the rule is evaluated if there is none
	usesOldSelf bool

	program        *cel.Program // nil without text and with a fault
	fault          string
	expressionText string       // of the message
	expression     *cel.Program // nil if there is none
	messageFault   string
}

// cost is what evaluations of the rule and of its message are estimated to cost at most.
func (c *compiled) cost() uint64 { return maxCost(c.program) }

func (c *compiled) messageCost() uint64 { return maxCost(c.expression) }

func maxCost(p *cel.Program) uint64 {
	if p == nil {
		return 0
	}
	return p.Cost().Max
}

// expressionSet is what of some rules is stored already.
type expressionSet struct {
	rules, messages map[string]bool
}

// scope compiles the rules of one schema.
type scope struct {
	ctx      context.Context // of the call
	compiler *Compiler
	known    expressionSet // compiled with what is stored
	all      bool          // everything is
	typ      *cel.DeclType // of the schema's values
	regexes  *regexBudget

	environments [4]*cel.Environment // made when they are first needed
	programs     map[source]*cel.Program
}

// source is what a program is made of. A schema may have one rule many times, with other messages.
type source struct {
	env     *cel.Environment
	text    string
	message bool // it has to be a string, not a boolean
}

// compile compiles an expression, or returns what it has made of it before.
func (s *scope) compile(of source) (*cel.Program, error) {
	if p := s.programs[of]; p != nil {
		return p, nil
	}
	want := celgo.BoolType
	if of.message {
		want = celgo.StringType
	}
	p, err := of.env.Compile(of.text, want)
	if err != nil {
		return nil, err
	}
	if s.programs == nil {
		s.programs = map[source]*cel.Program{}
	}
	s.programs[of] = p
	return p, nil
}

// maxRegexSize is how many instructions regular expressions in the rules of a schema may have together: 40 MB.
const maxRegexSize = 1_000_000

// regexBudget counts them.
type regexBudget struct{ spent int }

const regexesTooLarge = "program instantiation failed: the regular expressions of all rules together are too large"

// spend adds those of a program, and says whether there are too many.
func (b *regexBudget) spend(p *cel.Program) bool {
	b.spent += p.RegexSize()
	return b.exceeded()
}

func (b *regexBudget) exceeded() bool { return b.spent > maxRegexSize }

// environment is the one for an expression that is stored or not, and of a rule with an optional oldSelf or not.
func (s *scope) environment(stored, optional bool) (*cel.Environment, error) {
	base, at := s.compiler.compatible, 0
	if stored {
		base, at = s.compiler.stored, 1
	}
	if optional {
		at += 2
	}
	if s.environments[at] == nil {
		extended, err := base.Extend([]cel.Variable{{Name: selfName, Type: s.typ, SizesOthers: true}, {Name: oldSelfName, Type: s.typ, Optional: optional}})
		if err != nil {
			return nil, err
		}
		s.environments[at] = extended
	}
	return s.environments[at], nil
}

// rules compiles those of s.
func (s *scope) rules(of *structural.Schema) ([]compiled, error) {
	if s.typ == nil {
		return nil, errors.New("failed to convert to declType for CEL validation rules")
	}
	s.typ = s.typ.Named(typeName(of.Rules))
	all := make([]compiled, len(of.Rules))
	for i := range of.Rules {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		if err := s.rule(&all[i], of, &of.Rules[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// typeName is what the type of objects is called in messages. Nobody can rely on it: it is another with other rules.
func typeName(rules []apiextensionsv1.ValidationRule) string {
	h := fnv.New32a()
	for i := range rules {
		h.Write([]byte(rules[i].Rule)) // never fails
	}
	return fmt.Sprintf("selfType%d", h.Sum32())
}

func (s *scope) rule(c *compiled, of *structural.Schema, rule *apiextensionsv1.ValidationRule) error {
	*c = compiled{
		text: strings.TrimSpace(rule.Rule), message: strings.TrimSpace(rule.Message), hasMessage: rule.Message != "", reason: rule.Reason,
		optional: rule.OptionalOldSelf != nil && *rule.OptionalOldSelf,
	}
	if c.text == "" {
		return nil
	}
	if s.regexes.exceeded() { // nothing more is tried
		c.fault = regexesTooLarge
		return nil
	}
	env, err := s.environment(s.all || s.known.rules[rule.Rule], c.optional)
	if err != nil {
		return err
	}
	if c.program, err = s.compile(source{env, rule.Rule, false}); err != nil {
		c.fault = faultOf(err, "", "cel expression must evaluate to a bool")
		var failure *cel.CompileError
		c.usesOldSelf = errors.As(err, &failure) && failure.References(oldSelfName)
		return nil
	}
	c.usesOldSelf = c.program.References(oldSelfName)
	if s.regexes.spend(c.program) {
		c.program, c.fault = nil, regexesTooLarge
		return nil
	}
	c.expressionText = rule.MessageExpression
	if rule.MessageExpression != "" {
		if env, err = s.environment(s.all || s.known.messages[rule.MessageExpression], c.optional); err != nil {
			return err
		}
		if c.expression, err = s.compile(source{env, rule.MessageExpression, true}); err != nil {
			c.messageFault = faultOf(err, "messageExpression ", "messageExpression must evaluate to a string")
			return nil
		}
		if s.regexes.spend(c.expression) {
			c.expression, c.messageFault = nil, regexesTooLarge
			return nil
		}
	}
	if rule.FieldPath != "" {
		if at, _, err := of.At(rule.FieldPath, true); err == nil {
			c.path = at.String()
		}
	}
	return nil
}

// faultOf says why an expression does not compile.
func faultOf(err error, what, wrongType string) string {
	var failure *cel.CompileError
	if !errors.As(err, &failure) {
		return err.Error()
	}
	switch failure.Stage {
	case cel.Returning:
		return wrongType
	case cel.Planning:
		if what != "" {
			return what + "instantiation failed: " + failure.Detail
		}
		return "program instantiation failed: " + failure.Detail
	case cel.Estimating:
		if what != "" {
			return "cost estimation failed for messageExpression: " + failure.Detail
		}
		return "cost estimation failed: " + failure.Detail
	}
	return what + "compilation failed: " + failure.Detail
}

// Rules are the compiled rules of a schema. They may be used concurrently. The nil Rules are none.
type Rules struct {
	root   *node
	schema *structural.Schema
}

// node has the rules of a schema and those below it.
type node struct {
	schema      *structural.Schema // as rules see it
	rules       []compiled
	failure     error // why there are no rules
	usesOldSelf bool  // a rule does

	items, additional *node
	properties        []property // sorted
}

type property struct {
	name string
	*node
}

// Compile compiles the rules of a schema for a resource, nil if there are none. It is for schemas that are stored: everything
// that any release accepts may be in them. A rule that does not compile nevertheless is one of which every object is told that it
// cannot be evaluated. An error is one of this program, or that there are more rules than [MaxRules] and [MaxRuleText] say.
func (c *Compiler) Compile(s *structural.Schema) (*Rules, error) {
	return c.compile(context.Background(), s)
}

// What rules of a schema are compiled, so that it takes no longer than a second and not more than some 30 MB: a rule takes half a
// millisecond and 15 KB, a long one time by the square of its length. The largest schema of well-known projects has 86 rules, the
// longest of which has 1270 bytes, and 8 KB of text. kube-apiserver has no such bounds.
const (
	MaxRules    = 2000
	MaxRule     = 16 << 10  // bytes of a rule, or of the expression of its message
	MaxRuleText = 256 << 10 // bytes of all of these
)

func (c *Compiler) compile(ctx context.Context, s *structural.Schema) (*Rules, error) {
	ruled := rulesBelow{}
	if !ruled.note(s) {
		return nil, nil
	}
	if err := ruled.fit(); err != nil {
		return nil, err
	}
	root, err := newTreeCompiler(ctx, c, ruled).node(s, asSeen(s), declare(s, true), true)
	if err != nil || root == nil {
		return nil, err
	}
	return &Rules{root: root, schema: s}, nil
}

// rulesBelow are schemas that have rules, or below which there are some.
type rulesBelow map[*structural.Schema]bool

// note notes s and those below, and says whether there are rules.
func (r rulesBelow) note(s *structural.Schema) bool {
	if s == nil {
		return false
	}
	ruled := len(s.Rules) > 0
	for _, property := range s.Properties {
		ruled = r.note(property) || ruled
	}
	ruled = r.note(s.Items) || ruled
	ruled = r.note(s.Additional) || ruled
	if ruled {
		r[s] = true
	}
	return ruled
}

// fit says that there are not too many rules.
func (r rulesBelow) fit() error {
	rules, text := 0, 0
	for s := range r {
		rules += len(s.Rules)
		for i := range s.Rules {
			rule, message := len(s.Rules[i].Rule), len(s.Rules[i].MessageExpression)
			if rule > MaxRule || message > MaxRule {
				return fmt.Errorf("a rule of the schema is longer than %d bytes", MaxRule)
			}
			text += rule + message
		}
	}
	if rules > MaxRules || text > MaxRuleText {
		return fmt.Errorf("the schema has more than %d rules, or more than %d bytes of them", MaxRules, MaxRuleText)
	}
	return nil
}

// treeCompiler compiles the rules of a schema and all below.
type treeCompiler struct {
	ctx context.Context // of the call
	*Compiler
	ruled   rulesBelow
	regexes *regexBudget
}

func newTreeCompiler(ctx context.Context, c *Compiler, ruled rulesBelow) treeCompiler {
	return treeCompiler{ctx, c, ruled, &regexBudget{}}
}

// node compiles what is in s and below, nil if that is nothing. typ is the type of its values, nil if rules cannot see them.
func (c treeCompiler) node(s, seen *structural.Schema, typ *cel.DeclType, resource bool) (*node, error) {
	n := &node{schema: seen}
	if resource {
		n.schema = withMeta(seen)
	}
	if len(s.Rules) > 0 {
		sc := scope{ctx: c.ctx, compiler: c.Compiler, all: true, typ: typ, regexes: c.regexes}
		n.rules, n.failure = sc.rules(s)
		n.usesOldSelf = slices.ContainsFunc(n.rules, func(r compiled) bool { return r.usesOldSelf })
	}
	var elem *cel.DeclType
	if typ != nil {
		elem = typ.Elem
	}
	var err error
	if c.ruled[s.Items] {
		if n.items, err = c.node(s.Items, seen.Items, elem, s.Items.Embedded); err != nil {
			return nil, err
		}
	}
	if c.ruled[s.Additional] {
		if n.additional, err = c.node(s.Additional, seen.Additional, elem, s.Additional.Embedded); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		member := s.Properties[name]
		if !c.ruled[member] {
			continue
		}
		inside := fieldType(typ, name, member)
		if inside == nil {
			continue
		}
		p, err := c.node(member, seen.Properties[name], inside, member.Embedded)
		if err != nil {
			return nil, err
		}
		if p != nil {
			n.properties = append(n.properties, property{name, p})
		}
	}
	if len(n.rules) == 0 && n.failure == nil && n.items == nil && n.additional == nil && len(n.properties) == 0 {
		return nil, nil
	}
	return n, nil
}

// fieldType is the type of a property whose object has type typ, nil if rules cannot see it. One whose name cannot be written in an
// expression has rules of its own nevertheless.
func fieldType(typ *cel.DeclType, name string, property *structural.Schema) *cel.DeclType {
	escaped, ok := cel.Escape(name)
	if !ok {
		return declare(property, property.Embedded)
	}
	if typ == nil || typ.Fields[escaped] == nil {
		return nil
	}
	return typ.Fields[escaped].Type
}
