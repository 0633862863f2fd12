package jwt

import (
	"context"
	"crypto/x509"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/keelson-dev/keelson/runtime/cel"
	"github.com/keelson-dev/keelson/runtime/cel/plain"
)

// Variables of expressions.
const (
	claimsVariable = "claims" // the claims of the token
	userVariable   = "user"   // the user that the mappings make
)

// expressions compiles expressions.
type expressions struct {
	claims, user *plain.Environment
}

func newExpressions() (*expressions, error) {
	claims, err := plain.New(cel.Compatible, []cel.Variable{{Name: claimsVariable, Type: plain.AnyFields()}})
	if err != nil {
		return nil, err
	}
	text := cel.String(cel.Unbounded)
	texts := cel.List(text, cel.Unbounded)
	fields := map[string]*cel.DeclField{}
	for name, typ := range map[string]*cel.DeclType{"username": text, "uid": text, "groups": texts, "extra": cel.Map(text, texts, cel.Unbounded)} {
		fields[name] = &cel.DeclField{Name: name, Type: typ}
	}
	user, err := plain.New(cel.Compatible, []cel.Variable{{Name: userVariable, Type: cel.Object("kubernetes.UserInfo", fields)}})
	if err != nil {
		return nil, err
	}
	return &expressions{claims, user}, nil
}

// program is a compiled expression.
type program struct {
	*plain.Program
	text string
}

// condition is a compiled condition. Its message is the reason why it does not hold.
type condition struct {
	*program
	message string
}

// attribute is a compiled mapping of an attribute.
type attribute struct {
	key string
	*program
}

// rule compiles a condition of the claims or of the user.
func (*expressions) rule(in *plain.Environment, text string, at *field.Path) (*program, *field.Error) {
	p, err := in.Compile(text)
	switch {
	case err != nil:
		return nil, field.Invalid(at, text, err.Error())
	case !p.IsBool():
		return nil, field.Invalid(at, text, "must evaluate to bool")
	}
	return &program{p, text}, nil
}

// mapping compiles an expression whose value is used.
func (x *expressions) mapping(text string, at *field.Path) (*program, field.ErrorList) {
	p, err := x.claims.Compile(text)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(at, text, err.Error())}
	}
	return &program{p, text}, nil
}

// evaluation evaluates the expressions about one token, which share a budget of costs.
type evaluation struct {
	ctx    context.Context
	budget int64
}

// of returns the value of a program.
func (e *evaluation) of(p *program, variable string, value any) (any, error) {
	result, left, err := p.Eval(e.ctx, map[string]any{variable: value}, e.budget)
	e.budget = left
	if err != nil {
		return nil, fmt.Errorf("oidc: expression %q: %w", p.text, err)
	}
	return result, nil
}

// holds returns an error unless a condition is true.
func (e *evaluation) holds(r condition, variable string, value any) error {
	result, err := e.of(r.program, variable, value)
	switch {
	case err != nil:
		return err
	case result != true && r.message != "":
		return fmt.Errorf("oidc: validation expression %q failed: %s", r.text, r.message)
	case result != true:
		return fmt.Errorf("oidc: validation expression %q failed", r.text)
	}
	return nil
}

// entry is an entry of a configuration with its compiled parts.
type entry struct {
	Entry
	roots                 *x509.CertPool // nil for those of the system
	rules, userRules      []condition
	username, groups, uid *program // nil if there is no expression
	extra                 []attribute
}
