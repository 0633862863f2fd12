package library

import (
	"context"
	"reflect"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/validation"
)

// The types of what authorizer is, and of what its methods evaluate to.
var (
	AuthorizerType    = celgo.ObjectType("kubernetes.authorization.Authorizer")
	PathCheckType     = celgo.ObjectType("kubernetes.authorization.PathCheck")
	GroupCheckType    = celgo.ObjectType("kubernetes.authorization.GroupCheck")
	ResourceCheckType = celgo.ObjectType("kubernetes.authorization.ResourceCheck")
	DecisionType      = celgo.ObjectType("kubernetes.authorization.Decision")
)

// Check is what an expression asks to be authorized.
type Check struct {
	// ServiceAccount is whom it asks for, by namespace and name; the sender of the request if both are empty.
	ServiceAccountNamespace, ServiceAccountName string
	// Verb is as the expression has it.
	Verb string
	// Path is of a request that is for no resource. It is not empty then.
	Path string
	// Resource is the plural. The version of the API is any.
	Group, Resource, Subresource, Namespace, Name string
	// FieldSelector and LabelSelector are as the expression has them: whoever authorizes parses them, and takes those that do
	// not parse for none.
	FieldSelector, LabelSelector string
}

// Decision is the answer to a Check.
type Decision struct {
	Allowed bool
	Reason  string
	Err     error
}

// Checker answers checks. It is called while an expression is evaluated, with the context given to [NewAuthorizer].
type Checker func(context.Context, Check) Decision

// NewAuthorizer is a value for the variable authorizer, of type [AuthorizerType]. It is for the evaluations of one request,
// whose context it has.
func NewAuthorizer(ctx context.Context, checker Checker) ref.Val {
	return authorizer{request{ctx: ctx, checker: checker}}
}

// NewResourceAuthorizer is a value for the variable authorizer.requestResource, of type [ResourceCheckType]. What is asked
// is what the check has but for the verb.
func NewResourceAuthorizer(ctx context.Context, checker Checker, resource Check) ref.Val {
	return resourceCheck{request{ctx: ctx, checker: checker, check: resource}}
}

// request is what has been said so far.
type request struct {
	ctx     context.Context
	checker Checker
	check   Check
}

// with is the request with something more.
func (r request) with(add func(*Check)) request {
	add(&r.check)
	return r
}

// decide asks.
func (r request) decide(verb string) ref.Val {
	r.check.Verb = verb
	return decision{r.checker(r.ctx, r.check)}
}

type (
	authorizer    struct{ request }
	pathCheck     struct{ request }
	groupCheck    struct{ request }
	resourceCheck struct{ request }
	decision      struct{ Decision }
)

// Authorization has the functions of the variable authorizer. It declares no variable.
func Authorization() celgo.EnvOption {
	text := celgo.StringType
	return celgo.Lib(lib{name: "kubernetes.authz", functions: []function{
		method("path", "authorizer_path", args(AuthorizerType, text), PathCheckType, onText(func(v authorizer, path string) ref.Val {
			if strings.TrimSpace(path) == "" {
				return types.NewErr("path must not be empty")
			}
			return pathCheck{v.with(func(c *Check) { c.Path = path })}
		})),
		method("group", "authorizer_group", args(AuthorizerType, text), GroupCheckType, onText(func(v authorizer, group string) ref.Val {
			return groupCheck{v.with(func(c *Check) { c.Group = group })}
		})),
		method("serviceAccount", "authorizer_serviceaccount", args(AuthorizerType, text, text), AuthorizerType,
			celgo.FunctionBinding(serviceAccount)),
		method("resource", "groupcheck_resource", args(GroupCheckType, text), ResourceCheckType,
			onText(func(v groupCheck, resource string) ref.Val {
				if strings.TrimSpace(resource) == "" {
					return types.NewErr("resource must not be empty")
				}
				return resourceCheck{v.with(func(c *Check) { c.Resource = resource })}
			})),
		narrow("subresource", "resourcecheck_subresource", func(c *Check, s string) { c.Subresource = s }),
		narrow("namespace", "resourcecheck_namespace", func(c *Check, s string) { c.Namespace = s }),
		narrow("name", "resourcecheck_name", func(c *Check, s string) { c.Name = s }),
		{"check", []celgo.FunctionOpt{
			celgo.MemberOverload("pathcheck_check", args(PathCheckType, text), DecisionType,
				onText(func(v pathCheck, verb string) ref.Val { return v.decide(verb) })),
			celgo.MemberOverload("resourcecheck_check", args(ResourceCheckType, text), DecisionType,
				onText(func(v resourceCheck, verb string) ref.Val { return v.decide(verb) })),
		}},
		method("errored", "decision_errored", args(DecisionType), celgo.BoolType,
			on(func(v decision) ref.Val { return types.Bool(v.Err != nil) })),
		method("error", "decision_error", args(DecisionType), text, on(func(v decision) ref.Val {
			if v.Err == nil {
				return types.String("")
			}
			return types.String(v.Err.Error())
		})),
		method("allowed", "decision_allowed", args(DecisionType), celgo.BoolType,
			on(func(v decision) ref.Val { return types.Bool(v.Allowed) })),
		method("reason", "decision_reason", args(DecisionType), text, on(func(v decision) ref.Val { return types.String(v.Reason) })),
	}})
}

// AuthorizationSelectors has the functions that ask for a selection of resources. It needs Authorization.
func AuthorizationSelectors() celgo.EnvOption {
	return celgo.Lib(lib{name: "kubernetes.authzSelectors", functions: []function{
		narrow("fieldSelector", "authorizer_fieldselector", func(c *Check, s string) { c.FieldSelector = s }),
		narrow("labelSelector", "authorizer_labelselector", func(c *Check, s string) { c.LabelSelector = s }),
	}})
}

// narrow declares a method that says more of a resource.
func narrow(name, id string, set func(*Check, string)) function {
	return method(name, id, args(ResourceCheckType, celgo.StringType), ResourceCheckType,
		onText(func(v resourceCheck, s string) ref.Val { return resourceCheck{v.with(func(c *Check) { set(c, s) })} }))
}

// serviceAccount asks for somebody else.
func serviceAccount(args ...ref.Val) ref.Val {
	if len(args) != 3 {
		return types.NoSuchOverloadErr()
	}
	v, ok := args[0].(authorizer)
	if !ok {
		return noOverload(args[0])
	}
	namespace, ok := args[1].Value().(string)
	if !ok {
		return noOverload(args[1])
	}
	name, ok := args[2].Value().(string)
	if !ok {
		return noOverload(args[2])
	}
	if len(validation.ValidateServiceAccountName(name, false)) > 0 {
		return types.NewErr("Invalid service account name")
	}
	if len(validation.ValidateNamespaceName(namespace, false)) > 0 {
		return types.NewErr("Invalid service account namespace")
	}
	return authorizer{v.with(func(c *Check) { c.ServiceAccountNamespace, c.ServiceAccountName = namespace, name })}
}

// ConvertToNative implements ref.Val.
func (request) ConvertToNative(to reflect.Type) (any, error) {
	return native(nil, nil, "authorizer", to)
}

// Equal implements ref.Val. Nothing of authorization can be compared.
func (request) Equal(other ref.Val) ref.Val { return noOverload(other) }

// Value implements ref.Val. There is nothing to see.
func (request) Value() any { return types.NoSuchOverloadErr() }

func (v authorizer) ConvertToType(to ref.Type) ref.Val    { return convert(v, AuthorizerType, to) }
func (v pathCheck) ConvertToType(to ref.Type) ref.Val     { return convert(v, PathCheckType, to) }
func (v groupCheck) ConvertToType(to ref.Type) ref.Val    { return convert(v, GroupCheckType, to) }
func (v resourceCheck) ConvertToType(to ref.Type) ref.Val { return convert(v, ResourceCheckType, to) }
func (v decision) ConvertToType(to ref.Type) ref.Val      { return convert(v, DecisionType, to) }

func (authorizer) Type() ref.Type    { return AuthorizerType }
func (pathCheck) Type() ref.Type     { return PathCheckType }
func (groupCheck) Type() ref.Type    { return GroupCheckType }
func (resourceCheck) Type() ref.Type { return ResourceCheckType }
func (decision) Type() ref.Type      { return DecisionType }

// ConvertToNative implements ref.Val.
func (decision) ConvertToNative(to reflect.Type) (any, error) {
	return native(nil, nil, "decision", to)
}

// Equal implements ref.Val. Nothing of authorization can be compared.
func (decision) Equal(other ref.Val) ref.Val { return noOverload(other) }

// Value implements ref.Val. There is nothing to see.
func (decision) Value() any { return types.NoSuchOverloadErr() }
