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

// Names of the variables of rules.
const (
	selfName    = "self"
	oldSelfName = "oldSelf"
)

// Compiler compiles rules. Making one is slow, so a process should make one once. It may be used concurrently.
type Compiler struct {
	stored, compatible *cel.Environment
	checked            checked
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

// compiled is one rule with its programs, as far as it compiles.
type compiled struct {
	text        string // of the rule
	message     string // without surrounding space
	hasMessage  bool   // the message may be empty
	reason      *apiextensionsv1.FieldValueErrorReason
	path        string // path of the field at fault, relative to the value; "" is the value itself
	optional    bool   // oldSelf is an optional value, and the rule is evaluated without an old value too
	usesOldSelf bool

	program        *cel.Program // nil if the text is empty or has a fault
	fault          string       // why the rule does not compile, "" if it compiles
	expressionText string       // text of the message expression
	expression     *cel.Program // nil if there is no message expression
	messageFault   string       // why the message expression does not compile
}

// cost returns the estimated maximum cost of one evaluation of the rule.
func (c *compiled) cost() uint64 { return maxCost(c.program) }

func (c *compiled) messageCost() uint64 { return maxCost(c.expression) }

func maxCost(p *cel.Program) uint64 {
	if p == nil {
		return 0
	}
	return p.Cost().Max
}

// expressionSet is the set of rules and message expressions that are stored already.
type expressionSet struct {
	rules, messages map[string]bool
}

// scope compiles the rules of one schema.
type scope struct {
	ctx      context.Context // of the call
	compiler *Compiler
	known    expressionSet // expressions to compile with the stored environment
	all      bool          // compile all expressions with the stored environment
	typ      *cel.DeclType // type of the schema's values
	regexes  *regexBudget

	made         *made
	environments [4]*cel.Environment // made when first needed
}

// made has what was compiled for a schema and the schemas inside it. Types without objects share their environments, because making
// an environment takes as long as compiling a short rule.
type made struct {
	programs     map[source]*cel.Program
	environments map[around]*cel.Environment
}

func newMade() *made {
	return &made{programs: map[source]*cel.Program{}, environments: map[around]*cel.Environment{}}
}

// source is the input from which a program is compiled. A schema may have the same rule many times, with different messages.
type source struct {
	schema   *structural.Schema // the schema that has the rule
	text     string
	message  bool // the result has to be a string, not a boolean
	optional bool // oldSelf is an optional value
}

// around identifies an environment for values of a type without objects.
type around struct {
	at  int // the index in scope.environments
	typ string
}

// compile compiles an expression, or returns the program that was compiled before. stored says that the expression may use the
// features that are new in this release. A program that was compiled with stored false is returned for both, because a stored
// expression may use all features that a new one may use.
func (s *scope) compile(of source, stored bool) (*cel.Program, error) {
	if p := s.made.programs[of]; p != nil {
		return p, nil
	}
	env, err := s.environment(stored, of.optional)
	if err != nil {
		return nil, err
	}
	want := celgo.BoolType
	if of.message {
		want = celgo.StringType
	}
	p, err := env.Compile(of.text, want)
	if err != nil {
		return nil, err
	}
	s.made.programs[of] = p
	return p, nil
}

// maxRegexSize is the maximum number of instructions of all regular expressions in the rules of a schema together, about 40 MB.
const maxRegexSize = 1_000_000

// regexBudget counts these instructions.
type regexBudget struct{ spent int }

const regexesTooLarge = "program instantiation failed: the regular expressions of all rules together are too large"

// spend adds the instructions of a program, and reports whether there are now too many.
func (b *regexBudget) spend(p *cel.Program) bool {
	b.spent += p.RegexSize()
	return b.exceeded()
}

func (b *regexBudget) exceeded() bool { return b.spent > maxRegexSize }

// environment returns the environment for an expression that is stored or not, in a rule with an optional oldSelf or not.
func (s *scope) environment(stored, optional bool) (*cel.Environment, error) {
	base, at := s.compiler.compatible, 0
	if stored {
		base, at = s.compiler.stored, 1
	}
	if optional {
		at += 2
	}
	if s.environments[at] != nil {
		return s.environments[at], nil
	}
	variables := []cel.Variable{{Name: selfName, Type: s.typ, SizesOthers: true}, {Name: oldSelfName, Type: s.typ, Optional: optional}}
	key, shares := around{at, s.typ.Type().String()}, !s.typ.HasObjects()
	if same := s.made.environments[key]; shares && same != nil {
		s.environments[at] = same.Resized(variables)
		return s.environments[at], nil
	}
	extended, err := base.Extend(variables)
	if err != nil {
		return nil, err
	}
	s.environments[at] = extended
	if shares {
		s.made.environments[key] = extended
	}
	return extended, nil
}

// rules compiles the rules of a schema.
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

// typeName returns the name of the object type in messages. It changes with the rules, so nobody can rely on it.
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
	if s.regexes.exceeded() { // compile no more rules
		c.fault = regexesTooLarge
		return nil
	}
	var err error
	if c.program, err = s.compile(source{of, rule.Rule, false, c.optional}, s.all || s.known.rules[rule.Rule]); err != nil {
		var failure *cel.CompileError
		if !errors.As(err, &failure) {
			return err
		}
		c.fault = faultOf(failure, "", "cel expression must evaluate to a bool")
		c.usesOldSelf = failure.References(oldSelfName)
		return nil
	}
	c.usesOldSelf = c.program.References(oldSelfName)
	if s.regexes.spend(c.program) {
		c.program, c.fault = nil, regexesTooLarge
		return nil
	}
	c.expressionText = rule.MessageExpression
	if rule.MessageExpression != "" {
		if c.expression, err = s.compile(source{of, rule.MessageExpression, true, c.optional}, s.all || s.known.messages[rule.MessageExpression]); err != nil {
			var failure *cel.CompileError
			if !errors.As(err, &failure) {
				return err
			}
			c.messageFault = faultOf(failure, "messageExpression ", "messageExpression must evaluate to a string")
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

// faultOf returns the message for an expression that does not compile.
func faultOf(failure *cel.CompileError, what, wrongType string) string {
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

// Rules are the compiled rules of a schema. They may be used concurrently. A nil *Rules has no rules.
type Rules struct {
	root   *node
	schema *structural.Schema
}

// node has the rules of a schema and of the schemas inside it.
type node struct {
	schema      *structural.Schema // schema with the fields that rules see
	rules       []compiled
	failure     error // why the rules could not be compiled
	usesOldSelf bool  // at least one rule uses oldSelf

	items, additional *node
	properties        []property // sorted
}

type property struct {
	name string
	*node
}

// Compile compiles the rules of a schema of a resource. It returns nil if the schema has no rules. The schema must be that of a
// stored definition: its rules may use the features of every release. If a rule does not compile nevertheless, the evaluation
// reports for every object that the rule cannot be evaluated. An error means that there are more rules than [MaxRules], [MaxRule]
// and [MaxRuleText] allow, or that this package has a fault. The limits keep the running time below about a second;
// kube-apiserver has no such limits. All regular expressions in the rules of a schema together may have a million instructions,
// of about forty bytes each; the rules beyond that do not compile. Equal rules of one schema are compiled once.
func (c *Compiler) Compile(s *structural.Schema) (*Rules, error) {
	return c.compile(context.Background(), s, newMade())
}

// Limits for the rules of a schema, so that compiling takes no longer than a second, allocates no more than some 120 MB, and
// keeps no more than 30 MB. A rule takes a third of a millisecond, allocates 60 to 110 KB and 2 KB for each byte of its text, and
// keeps 15 KB. The time for a long rule grows with the square of its length. The largest schema of well-known projects has 86
// rules and 8 KB of text; its longest rule has 1270 bytes. kube-apiserver has no such limits.
const (
	MaxRules    = 1000     // maximum number of rules
	MaxRule     = 16 << 10 // maximum number of bytes of a rule, or of a message expression
	MaxRuleText = 64 << 10 // maximum number of bytes of all rules and message expressions, as TextOf counts them
)

// ownText is how many bytes a rule or a message expression counts besides its text.
const ownText = 60

// TextOf returns the bytes that a rule counts for [MaxRuleText]: those of the rule and of its message expression, and 60 for each
// of the two.
func TextOf(rule *apiextensionsv1.ValidationRule) int {
	n := len(rule.Rule) + ownText
	if rule.MessageExpression != "" {
		n += len(rule.MessageExpression) + ownText
	}
	return n
}

func (c *Compiler) compile(ctx context.Context, s *structural.Schema, m *made) (*Rules, error) {
	ruled := rulesBelow{}
	if !ruled.note(s) {
		return nil, nil
	}
	if err := ruled.fit(); err != nil {
		return nil, err
	}
	root, err := newTreeCompiler(ctx, c, ruled, m).node(s, asSeen(s), declare(s, true), true)
	if err != nil || root == nil {
		return nil, err
	}
	return &Rules{root: root, schema: s}, nil
}

// rulesBelow is the set of schemas that have rules or have a schema with rules inside them.
type rulesBelow map[*structural.Schema]bool

// note adds s and the schemas inside it to the set, and reports whether there are rules.
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

// fit returns an error if there are too many rules.
func (r rulesBelow) fit() error {
	rules, text := 0, 0
	for s := range r {
		rules += len(s.Rules)
		for i := range s.Rules {
			rule, message := len(s.Rules[i].Rule), len(s.Rules[i].MessageExpression)
			if rule > MaxRule || message > MaxRule {
				return fmt.Errorf("a rule of the schema is longer than %d bytes", MaxRule)
			}
			text += TextOf(&s.Rules[i])
		}
	}
	if rules > MaxRules || text > MaxRuleText {
		return fmt.Errorf("the schema has more than %d rules, or more than %d bytes of them", MaxRules, MaxRuleText)
	}
	return nil
}

// treeCompiler compiles the rules of a schema and of all schemas inside it.
type treeCompiler struct {
	ctx context.Context // of the call
	*Compiler
	ruled   rulesBelow
	made    *made
	regexes *regexBudget
}

func newTreeCompiler(ctx context.Context, c *Compiler, ruled rulesBelow, m *made) treeCompiler {
	return treeCompiler{ctx, c, ruled, m, &regexBudget{}}
}

// node compiles the rules of s and of the schemas inside it. It returns nil if there are none. typ is the type of the values of
// s, nil if rules above s cannot see them.
func (c treeCompiler) node(s, seen *structural.Schema, typ *cel.DeclType, resource bool) (*node, error) {
	n := &node{schema: seen}
	if resource {
		n.schema = withMeta(seen)
	}
	if len(s.Rules) > 0 {
		sc := scope{ctx: c.ctx, compiler: c.Compiler, all: true, typ: typ, regexes: c.regexes, made: c.made}
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

// fieldType returns the type of a property of an object of type typ, nil if rules cannot see it. A property whose name cannot be
// written in an expression can still have rules of its own.
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
